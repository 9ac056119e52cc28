// Keeps the functions that the calls of each module go on to, which binding.cpp finds. No function
// is called while the loader's list is held.
#include "shim/interpose/caller_tables.hpp"

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "shim/interpose/binding.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/own_stack.hpp"

namespace cuwarden::shim {
namespace {

// The driver's functions for a module whose calls reach a wrapper that is no startup object. There
// are few such modules.
struct WrappedDriver {
  driver::RealDriver next{};
  // True once the slots that no library wraps are filled in. libcuda may be loaded later.
  std::atomic<bool> complete{false};
};
constinit WrappedDriver wrapped_drivers[64]{};
constinit std::atomic<std::size_t> used_wrapped_drivers{0};

// The functions that the calls of one module go on to.
struct Caller {
  // `unmapped`: the module was unloaded, so no thread can be calling from it. `retired`: the
  // module is loaded, but a library that its calls went on to was unloaded.
  enum State : std::uint32_t { empty, filling, ready, retired, unmapped };
  std::atomic<std::uint32_t> state{empty};
  // The module's addresses. They are written last, so that no thread finds an entry whose
  // functions are not filled in yet.
  std::atomic<std::uintptr_t> start{0}, end{0};
  // Hash of the module's path, by which another module at the same addresses is recognised.
  std::size_t path_hash = 0;
  // Addresses of next.cudaFree and of driver->next.cuMemFree_v2, which tell if the libraries that
  // they belong to are still loaded. 0: there is no such function.
  std::uintptr_t leads_to = 0, driver_leads_to = 0;
  driver::RealRuntime next{};  // functions that the loader would have bound, perhaps a wrapper's
  // Functions of the cudart itself, for a wrapper that calls back into the shim.
  driver::RealRuntime bottom{};
  // Null if the module's calls of the driver go on as those of the whole process.
  WrappedDriver* driver = nullptr;
  // One of `wrapped_drivers`, which the entry keeps for its later modules; null: none yet.
  WrappedDriver* kept_driver = nullptr;

  bool holds(std::uintptr_t address) const noexcept {
    return address >= start.load(std::memory_order_acquire) &&
           address < end.load(std::memory_order_acquire);
  }
};

// Modules that call the runtime; the largest programs have some dozens. The last entry stands for
// all callers without an entry, and is bound as if the caller were in no module.
constexpr std::size_t caller_limit = 1024;
constinit Caller callers[caller_limit]{};
constexpr Caller& elsewhere = callers[caller_limit - 1];
// Changes when entries of `callers` are emptied, and when a thread begins to unload libraries.
constinit std::atomic<std::uint32_t> generation{1};
// Number of threads that may be unloading libraries. Meanwhile an entry may be that of a module
// which is gone, and another one may lie at its addresses.
constinit std::atomic<int> unloading_threads{0};
constinit std::atomic<int> version{0};

// The caller that this thread looked up last.
struct LastCaller {
  std::uint32_t number;  // 1 plus the index in `callers`; 0: none yet
  std::uint32_t generation;
};
constinit thread_local LastCaller last_caller __attribute__((tls_model("initial-exec"))){};

// Looks up the runtime's functions. Other threads may be reading the slot.
void fill_runtime(Caller& slot, const LoadedObject& caller, const OpenedDefinitions& opened) {
  const RuntimeBinding found = runtime_binding(caller, opened);
#define RUNTIME(result, name, parameters, arguments)                    \
  __atomic_store_n(&slot.next.name, found.next.name, __ATOMIC_RELAXED); \
  __atomic_store_n(&slot.bottom.name, found.bottom.name, __ATOMIC_RELAXED);
#include "runtime_hooks/driver/hooks.def"
  slot.leads_to = reinterpret_cast<std::uintptr_t>(found.next.cudaFree);
}

WrappedDriver* kept_driver_of(Caller& slot) {
  if (slot.kept_driver != nullptr) return slot.kept_driver;
  const std::size_t index = used_wrapped_drivers.fetch_add(1, std::memory_order_relaxed);
  if (index < std::size(wrapped_drivers)) return slot.kept_driver = &wrapped_drivers[index];
  used_wrapped_drivers.store(std::size(wrapped_drivers), std::memory_order_relaxed);
  return nullptr;
}

// Lets the module's calls go on to the driver functions that `library` defines.
void wrap_driver(Caller& slot, const LoadedObject& library) {
  WrappedDriver* const wrapped = kept_driver_of(slot);
  if (wrapped == nullptr) return;
  wrapped->next = {};
  wrapped->complete.store(false, std::memory_order_relaxed);
#define HOOKED(result, name, parameters, arguments) \
  wrapped->next.name = reinterpret_cast<decltype(wrapped->next.name)>(library.find(#name));
#include "runtime_hooks/driver/hooks.def"
  slot.driver = wrapped;
  slot.driver_leads_to = library.start();
}

void fill_driver(Caller& slot, const LoadedObject& caller, const OpenedDefinitions& opened) {
  slot.driver = nullptr;
  slot.driver_leads_to = 0;
  if (const LoadedObject wrapper = driver_wrapper_for(caller, opened)) wrap_driver(slot, wrapper);
}

// Fills the slots of functions that no library wraps. Several threads may do so at once, and store
// the same values.
void complete(WrappedDriver& wrapped) {
  const driver::RealDriver& below = next_driver();
  if (!detail::filled.load(std::memory_order_acquire)) return;
  const auto fill = [&](auto member) {
    auto& function = wrapped.next.*member;
    if (__atomic_load_n(&function, __ATOMIC_RELAXED) == nullptr)
      __atomic_store_n(&function, below.*member, __ATOMIC_RELAXED);
  };
#define HOOKED(result, name, parameters, arguments) fill(&driver::RealDriver::name);
#define USE HOOKED
#include "runtime_hooks/driver/hooks.def"
  wrapped.complete.store(true, std::memory_order_release);
}

// Returns true if the object is the entry's module. `path_hash`: hash of the object's path.
bool is_module_of(const Caller& caller, const LoadedObject& object, std::size_t path_hash) {
  return object.start() == caller.start.load(std::memory_order_relaxed) &&
         object.end() == caller.end.load(std::memory_order_relaxed) &&
         path_hash == caller.path_hash;
}

// Returns true if the object that lies at the entry's addresses now is the entry's module.
bool is_mapped(const Caller& caller) {
  const LoadedObject module = object_at(caller.start.load(std::memory_order_relaxed));
  return module && is_module_of(caller, module, std::hash<std::string_view>()(module.path()));
}

const Caller* known_caller(std::uintptr_t address) {
  const bool may_be_gone = unloading_threads.load(std::memory_order_acquire) != 0;
  for (const Caller& caller : callers) {
    const std::uint32_t state = caller.state.load(std::memory_order_acquire);
    if (state == Caller::empty) return nullptr;
    if (state == Caller::ready && caller.holds(address) && (!may_be_gone || is_mapped(caller)))
      return &caller;
  }
  return nullptr;
}

bool take(Caller& caller) {
  std::uint32_t state = caller.state.load(std::memory_order_relaxed);
  return (state == Caller::empty || state == Caller::unmapped) &&
         caller.state.compare_exchange_strong(state, Caller::filling);
}

Caller* free_slot() {
  for (Caller& caller : callers)
    if (&caller != &elsewhere && take(caller)) return &caller;
  return nullptr;
}

// Fills a slot for the module at `address`. Returns the cudaRuntimeGetVersion of the runtime that
// it calls.
int (*fill_slot(Caller* slot, std::uintptr_t address))(int*) {
  const OpenedDefinitions opened = opened_definitions(address);
  void* get_version = nullptr;
  with_loaded_objects_held([&] {
    const LoadedObject caller = object_at(address);
    get_version = runtime_version_function_for(caller);
    slot->end.store(0, std::memory_order_release);
    fill_runtime(*slot, caller, opened);
    fill_driver(*slot, caller, opened);
    slot->path_hash = std::hash<std::string_view>()(caller.path());
    // The caller is in no module, because it was compiled at run time. Its page alone stands
    // for it.
    const std::uintptr_t start = caller ? caller.start() : address & ~std::uintptr_t{4095};
    slot->start.store(start, std::memory_order_release);
    slot->end.store(caller ? caller.end() : start + 4096, std::memory_order_release);
  });
  return reinterpret_cast<int (*)(int*)>(get_version);
}

// Returns `elsewhere` if the calling thread is to fill that entry; null if it is filled already.
// While another thread fills the entry, waits for a second at most. That thread may not go on: a
// forked child does not have it, and the caller may be a signal handler that has interrupted it.
// After the second, the calling thread fills the entry, too: both store the same functions.
Caller* elsewhere_to_fill() {
  const std::uint64_t deadline_ns = now_ns() + 1'000'000'000;
  for (;;) {
    const std::uint32_t state = elsewhere.state.load(std::memory_order_acquire);
    if (state == Caller::ready || state == Caller::retired) return nullptr;
    if (take(elsewhere) || now_ns() >= deadline_ns) return &elsewhere;
    system_clock.wait_ns(elsewhere.state, state, 1'000'000);
  }
}

// Several threads may resolve one caller at once. The table then has it twice, which is harmless.
const Caller* resolve(std::uintptr_t address) {
  struct Task {
    Caller* slot;
    std::uintptr_t address;
    int (*get_version)(int*);
  } task{free_slot(), address, nullptr};
  if (task.slot == nullptr) {
    task.slot = elsewhere_to_fill();
    if (task.slot == nullptr) return &elsewhere;
    task.address = 0;
  }
  const auto fill = [](void* argument) {
    auto& work = *static_cast<Task*>(argument);
    work.get_version = fill_slot(work.slot, work.address);
  };
  // The search keeps a list of objects, for which a small stack has no room. Without memory for
  // another stack it has to do with what is left, since the call needs its functions.
  const ErrnoGuard keep;
  if (!call_on_own_stack_if_small(fill, &task)) fill(&task);
  task.slot->state.store(Caller::ready, std::memory_order_release);
  int number = 0;
  if (version.load(std::memory_order_relaxed) == 0 && task.get_version != nullptr &&
      task.get_version(&number) == 0)
    version.store(number, std::memory_order_relaxed);
  return task.slot;
}

// Looks up the runtime's functions once more, for a caller whose functions were looked up before a
// runtime was loaded.
const Caller& looked_up_again(const Caller& known, const void* return_address) {
  struct Task {
    Caller& caller;
    std::uintptr_t address;
  } task{callers[&known - callers], reinterpret_cast<std::uintptr_t>(return_address)};
  const auto look_up = [](void* argument) {
    const Task& work = *static_cast<Task*>(argument);
    const OpenedDefinitions opened = opened_definitions(work.address);
    with_loaded_objects_held([&] { fill_runtime(work.caller, object_at(work.address), opened); });
  };
  const ErrnoGuard keep;
  if (!call_on_own_stack_if_small(look_up, &task)) look_up(&task);
  return known;
}

// Drops the entries of callers that were unloaded, or whose calls went on to a library that was.
// Each object is looked at once, since a process may have hundreds of callers and of objects.
void forget_unloaded_callers() {
  // A thread that remembers its last caller looks it up again after the generation has changed.
  // Only then may the slot be used for another module.
  const auto forget = [](Caller& caller, Caller::State state) {
    std::uint32_t ready = Caller::ready;
    generation.fetch_add(1, std::memory_order_release);
    caller.state.compare_exchange_strong(ready, state);
  };
  struct {
    std::bitset<caller_limit> ready, mapped, leads, driver_leads;
  } seen;
  with_loaded_objects_held([&] {
    for (std::size_t i = 0; i < caller_limit; ++i)
      seen.ready[i] = callers[i].state.load(std::memory_order_acquire) == Caller::ready;
    any_loaded_object([&](const LoadedObject& object) {
      const std::size_t path_hash = std::hash<std::string_view>()(object.path());
      for (std::size_t i = 0; i < caller_limit; ++i) {
        if (!seen.ready[i]) continue;
        const Caller& caller = callers[i];
        if (is_module_of(caller, object, path_hash)) seen.mapped.set(i);
        if (object.contains(caller.leads_to)) seen.leads.set(i);
        if (object.contains(caller.driver_leads_to)) seen.driver_leads.set(i);
      }
      return false;
    });
    for (std::size_t i = 0; i < caller_limit; ++i) {
      if (!seen.ready[i]) continue;
      Caller& caller = callers[i];
      const bool is_cut_off = (caller.leads_to != 0 && !seen.leads[i]) ||
                              (caller.driver_leads_to != 0 && !seen.driver_leads[i]);
      const bool is_gone = &caller != &elsewhere && !seen.mapped[i];
      if (is_cut_off || is_gone)
        forget(caller, seen.mapped[i] ? Caller::retired : Caller::unmapped);
    }
  });
}

const Caller& caller_at(const void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  const std::uint32_t now = generation.load(std::memory_order_acquire);
  LastCaller& last = last_caller;
  const Caller* caller =
      last.number != 0 && last.generation == now ? &callers[last.number - 1] : nullptr;
  if (caller == nullptr || !caller->holds(address)) {
    caller = known_caller(address);
    if (caller == nullptr) caller = resolve(address);
    last = {static_cast<std::uint32_t>(caller - callers) + 1, now};
  }
  return *caller;
}

}  // namespace

const driver::RealRuntime& next_runtime_for(const void* return_address, driver::Row row) {
  const Caller* caller = &caller_at(return_address);
  // No runtime was loaded when the module's functions were looked up.
  if (caller->leads_to == 0) [[unlikely]]
    caller = &looked_up_again(*caller, return_address);
  // If this thread is already inside the same call, a wrapper has called by name instead of by
  // RTLD_NEXT.
  const bool again = hooks::call_state.runtime_row == static_cast<std::uint16_t>(row) + 1;
  return again ? caller->bottom : caller->next;
}

const driver::RealDriver& next_driver_for(const void* return_address) {
  WrappedDriver* const wrapped = caller_at(return_address).driver;
  if (wrapped == nullptr) [[likely]]
    return next_driver();
  if (!wrapped->complete.load(std::memory_order_acquire)) complete(*wrapped);
  return wrapped->next;
}

void unloading_begins() {
  unloading_threads.fetch_add(1);
  generation.fetch_add(1, std::memory_order_release);
}

void unloading_ends(bool has_unloaded) {
  if (has_unloaded) forget_unloaded_callers();
  unloading_threads.fetch_sub(1);
}

int runtime_version() { return version.load(std::memory_order_relaxed); }

}  // namespace cuwarden::shim
