// Finds, for each calling module, the functions to which the loader would have bound the module
// without the shim. No function is called while the loader's list is held.
#include "shim/interpose/caller_tables.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/interpose/search_order.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/own_stack.hpp"

namespace cuwarden::shim {
namespace {

// The driver's functions for a module in front of whose calls a library that was opened by dlopen
// stands. There are few such modules.
struct WrappedDriver {
  driver::RealDriver next{};
  // True once the slots that no library wraps are filled in. libcuda may be loaded later.
  std::atomic<bool> complete{false};
};
constinit WrappedDriver wrapped_drivers[32]{};
constinit std::atomic<std::size_t> used_wrapped_drivers{0};

// The functions that the calls of one module go on to.
struct Caller {
  // `unmapped`: the module was unloaded, so no thread can be calling from it. `retired`: the
  // module is loaded, but the runtime that it was bound to was unloaded.
  enum State : std::uint32_t { empty, filling, ready, retired, unmapped };
  std::atomic<std::uint32_t> state{empty};
  // The module's addresses. They are written last, so that no thread finds an entry whose
  // functions are not filled in yet.
  std::atomic<std::uintptr_t> start{0}, end{0};
  // Address of next.cudaFree, which tells if that library is still loaded.
  std::uintptr_t leads_to = 0;
  driver::RealRuntime next{};  // functions that the loader would have bound, perhaps a wrapper's
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
// Changes when entries of `callers` are emptied.
constinit std::atomic<std::uint32_t> generation{1};
constinit std::atomic<int> version{0};

// The caller that this thread looked up last.
struct LastCaller {
  std::uint32_t number;  // 1 plus the index in `callers`; 0: none yet
  std::uint32_t generation;
};
constinit thread_local LastCaller last_caller __attribute__((tls_model("initial-exec"))){};

// True for a cudart as NVIDIA ships it, whose symbols have its version. A caller is bound to the
// version that it was linked with.
bool is_shared_runtime(const LoadedObject& object) {
  return object.soname().starts_with("libcudart");
}

// True for a cudart that is a shared library, or is linked into a library that exports its symbols.
// A wrapper exports only a few of them.
bool is_whole_runtime(const LoadedObject& object) {
  return object.find("__cudaRegisterFatBinary") != nullptr;
}

// Returns the cudart that belongs to a module: the module itself if it contains one, or the shared
// one that it needs, or else the first of the process. Converts to false if there is none.
LoadedObject runtime_of(const LoadedObject& caller) {
  if (caller && is_whole_runtime(caller)) return caller;
  LoadedObject found;
  if (caller)
    any_object_needed_by(caller, [&](const LoadedObject& object) {
      if (is_shared_runtime(object)) found = object;
      return static_cast<bool>(found);
    });
  if (!found)
    any_loaded_object([&](const LoadedObject& object) {
      if (!object.is_shim() && is_whole_runtime(object)) found = object;
      return static_cast<bool>(found);
    });
  return found;
}

template <class Function>
void fill_if_null(Function& slot, const LoadedObject& object, std::string_view name) {
  if (slot == nullptr) slot = reinterpret_cast<Function>(object.find(name));
}

void fill_missing(driver::RealRuntime& functions, const LoadedObject& object) {
#define RUNTIME(result, name, parameters, arguments) fill_if_null(functions.name, object, #name);
#include "runtime_hooks/driver/hooks.def"
}

// Calls visit(object) for each library that dlopen loaded and that is no CUDA library itself. If a
// caller finds no definition of the function that it called, one of these libraries has made the
// call for it: as its last instruction, a jump, which leaves no return address of its own.
template <class Visit>
void each_opened_library(Visit visit) {
  std::size_t index = 0;
  any_loaded_object([&](const LoadedObject& object) {
    if (index++ >= detail::startup_object_count() && !object.is_shim() &&
        !is_whole_runtime(object) && !is_library(object.soname(), "libcuda.so"))
      visit(object);
    return false;
  });
}

void find_runtime(Caller& slot, const LoadedObject& caller, const LoadedObject& runtime) {
  slot.next = {};
  // A module that needs a shared cudart is bound to the symbols of that cudart's version.
  const bool versioned = runtime && is_shared_runtime(runtime);
  if (versioned && runtime.start() == caller.start()) fill_missing(slot.next, runtime);
  any_object_searched_for(caller, [&](const LoadedObject& object, Scope) {
    const bool other_version =
        versioned && is_shared_runtime(object) && object.start() != runtime.start();
    if (!other_version) fill_missing(slot.next, object);
    return false;
  });
  if (slot.next.cudaFree == nullptr)
    each_opened_library([&](const LoadedObject& library) { fill_missing(slot.next, library); });
  if (runtime) fill_missing(slot.next, runtime);
  slot.leads_to = reinterpret_cast<std::uintptr_t>(slot.next.cudaFree);
}

bool is_wrapped_at_startup(std::string_view name) {
  return any_startup_object_behind_shim(
      [&](const LoadedObject& object) { return object.find(name) != nullptr; });
}

WrappedDriver* kept_driver_of(Caller& slot) {
  if (slot.kept_driver != nullptr) return slot.kept_driver;
  const std::size_t index = used_wrapped_drivers.fetch_add(1, std::memory_order_relaxed);
  if (index < std::size(wrapped_drivers)) return slot.kept_driver = &wrapped_drivers[index];
  used_wrapped_drivers.store(std::size(wrapped_drivers), std::memory_order_relaxed);
  return nullptr;
}

// Enters the functions that `object` defines and no object before it does. Makes the slot's table
// when it finds the first one.
void wrap_driver(Caller& slot, const LoadedObject& object) {
  const auto wrap = [&](auto member, std::string_view name) {
    void* const found = object.find(name);
    if (found == nullptr || is_wrapped_at_startup(name)) return;
    if (slot.driver == nullptr) {
      slot.driver = kept_driver_of(slot);
      if (slot.driver == nullptr) return;
      slot.driver->next = {};
      slot.driver->complete.store(false, std::memory_order_relaxed);
    }
    auto& function = slot.driver->next.*member;
    if (function == nullptr) function = reinterpret_cast<std::decay_t<decltype(function)>>(found);
  };
#define HOOK(result, name, parameters, arguments) wrap(&driver::RealDriver::name, #name);
#define COUNT HOOK
#define LAUNCH HOOK
#define QUERY HOOK
#define SUBMIT HOOK
#define WAIT HOOK
#define SHIM HOOK
#include "runtime_hooks/driver/hooks.def"
}

void find_driver_wrappers(Caller& slot, const LoadedObject& caller) {
  slot.driver = nullptr;
  const bool finds_driver =
      any_object_searched_for(caller, [&](const LoadedObject& object, Scope scope) {
        if (is_library(object.soname(), "libcuda.so")) return true;
        // Wrappers that were loaded with the program are in the table of the whole process.
        if (scope != Scope::startup) wrap_driver(slot, object);
        return false;
      });
  if (!finds_driver && slot.driver == nullptr)
    each_opened_library([&](const LoadedObject& library) { wrap_driver(slot, library); });
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
#define HOOK(result, name, parameters, arguments) fill(&driver::RealDriver::name);
#define COUNT HOOK
#define LAUNCH HOOK
#define QUERY HOOK
#define SUBMIT HOOK
#define WAIT HOOK
#define SHIM HOOK
#define USE HOOK
#include "runtime_hooks/driver/hooks.def"
  wrapped.complete.store(true, std::memory_order_release);
}

const Caller* known_caller(std::uintptr_t address) {
  for (const Caller& caller : callers) {
    const std::uint32_t state = caller.state.load(std::memory_order_acquire);
    if (state == Caller::empty) return nullptr;
    if (state == Caller::ready && caller.holds(address)) return &caller;
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
  void* get_version = nullptr;
  with_loaded_objects_held([&] {
    const LoadedObject caller = object_at(address);
    const LoadedObject runtime = runtime_of(caller);
    slot->end.store(0, std::memory_order_release);
    find_runtime(*slot, caller, runtime);
    find_driver_wrappers(*slot, caller);
    if (runtime) get_version = runtime.find("cudaRuntimeGetVersion");
    // The caller is in no module, because it was compiled at run time. Its page alone stands
    // for it.
    const std::uintptr_t start = caller ? caller.start() : address & ~std::uintptr_t{4095};
    slot->start.store(start, std::memory_order_release);
    slot->end.store(caller ? caller.end() : start + 4096, std::memory_order_release);
  });
  return reinterpret_cast<int (*)(int*)>(get_version);
}

// Several threads may resolve one caller at once. The table then has it twice, which is harmless.
const Caller* resolve(std::uintptr_t address) {
  struct Task {
    Caller* slot;
    std::uintptr_t address;
    int (*get_version)(int*);
  } task{free_slot(), address, nullptr};
  if (task.slot == nullptr) {
    for (;;) {
      const std::uint32_t state = elsewhere.state.load(std::memory_order_acquire);
      if (state == Caller::ready || state == Caller::retired) return &elsewhere;
      if (take(elsewhere)) break;
      constexpr timespec a_millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
      futex_wait(elsewhere.state, state, &a_millisecond);
    }
    task.slot = &elsewhere;
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

bool is_mapped(const Caller& caller) {
  const std::uintptr_t start = caller.start.load(std::memory_order_relaxed);
  const LoadedObject module = object_at(start);
  return module && module.start() == start &&
         module.end() == caller.end.load(std::memory_order_relaxed);
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

const driver::RealRuntime& next_runtime_for(const void* return_address) {
  return caller_at(return_address).next;
}

const driver::RealDriver& next_driver_for(const void* return_address) {
  WrappedDriver* const wrapped = caller_at(return_address).driver;
  if (wrapped == nullptr) [[likely]]
    return next_driver();
  if (!wrapped->complete.load(std::memory_order_acquire)) complete(*wrapped);
  return wrapped->next;
}

void forget_unloaded_callers() {
  // A thread that remembers its last caller looks it up again after the generation has changed.
  // Only then may the slot be used for another module.
  const auto forget = [](Caller& caller, Caller::State state) {
    std::uint32_t ready = Caller::ready;
    if (caller.state.load(std::memory_order_relaxed) != ready) return;
    generation.fetch_add(1, std::memory_order_release);
    caller.state.compare_exchange_strong(ready, state);
  };
  with_loaded_objects_held([&] {
    for (Caller& caller : callers) {
      if (caller.state.load(std::memory_order_acquire) != Caller::ready) continue;
      if (caller.leads_to != 0 && !object_at(caller.leads_to)) {
        forget(caller, is_mapped(caller) ? Caller::retired : Caller::unmapped);
      } else if (&caller != &elsewhere && !is_mapped(caller)) {
        forget(caller, Caller::unmapped);
      }
    }
  });
}

int runtime_version() { return version.load(std::memory_order_relaxed); }

}  // namespace cuwarden::shim
