// Finds, for each calling module, the runtime to which the loader would have bound the module
// without the shim. It searches first the objects that were loaded at startup, in their order, then
// those that the module itself needs. No function is called while the loader's list is held.
#include "shim/interpose/runtime_tables.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/own_stack.hpp"
#include "shim/support/ready_unwinder.hpp"

namespace cuwarden::shim {
namespace {

// The runtime functions that the calls of one module go on to.
struct Caller {
  // `unmapped`: the module was unloaded, so no thread can be calling from it. `retired`: the
  // module is loaded, but the runtime that it was bound to was unloaded.
  enum State : std::uint32_t { empty, filling, ready, retired, unmapped };
  std::atomic<std::uint32_t> state{empty};
  // The module's addresses. They are written last, so that no thread finds an entry whose
  // functions are not filled in yet.
  std::atomic<std::uintptr_t> start{0}, end{0};
  // Address of its cudaFree, which tells if that library is still loaded.
  std::uintptr_t leads_to = 0;
  driver::RealRuntime next{};  // functions that the loader would have bound, perhaps a wrapper's
  // Functions of the cudart itself, for a wrapper that calls back into the shim.
  driver::RealRuntime bottom{};

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

class Search {
 public:
  explicit Search(const LoadedObject& caller) : caller_(caller) {
    if (!caller) return;
    any_object_needed_by(caller, [&](const LoadedObject& object) {
      if (!is_shared_runtime(object)) return false;
      own_runtime_ = object;
      return true;
    });
  }

  void* next(std::string_view name) const {
    if (is_shared_runtime(caller_)) return caller_.find(name);
    if (void* found = at_startup(name)) return found;
    if (void* found = needed(name)) return found;
    return bottom(name);
  }

  void* bottom(std::string_view name) const {
    if (caller_ && is_whole_runtime(caller_)) return caller_.find(name);
    if (own_runtime_) return own_runtime_.find(name);
    void* found = nullptr;
    any_loaded_object([&](const LoadedObject& object) {
      if (object.is_shim() || !is_whole_runtime(object)) return false;
      found = object.find(name);
      return found != nullptr;
    });
    return found;
  }

 private:
  // Finds the function for a wrapper behind the shim, too, that calls by name, although RTLD_NEXT
  // would not have led that wrapper to the shim.
  void* at_startup(std::string_view name) const {
    void* found = nullptr;
    any_startup_object_behind_shim([&](const LoadedObject& object) {
      if (is_shared_runtime(object) && own_runtime_ && object.base() != own_runtime_.base())
        return false;
      found = object.find(name);
      return found != nullptr;
    });
    return found;
  }

  void* needed(std::string_view name) const {
    if (!caller_) return nullptr;
    if (is_whole_runtime(caller_)) return caller_.find(name);
    void* found = nullptr;
    any_object_needed_by(caller_, [&](const LoadedObject& object) {
      found = object.find(name);
      return found != nullptr;
    });
    return found;
  }

  LoadedObject caller_;
  LoadedObject own_runtime_;
};

template <class Function>
void fill(Function& slot, void* found) {
  slot = reinterpret_cast<Function>(found);
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
  int (*get_version)(int*) = nullptr;
  with_loaded_objects_held([&] {
    const LoadedObject caller = object_at(address);
    const Search search(caller);
    slot->end.store(0, std::memory_order_release);
#define RUNTIME(result, name, parameters, arguments) \
  fill(slot->next.name, search.next(#name));         \
  fill(slot->bottom.name, search.bottom(#name));
#include "runtime_hooks/driver/hooks.def"
    slot->leads_to = reinterpret_cast<std::uintptr_t>(slot->next.cudaFree);
    fill(get_version, search.bottom("cudaRuntimeGetVersion"));
    // The caller is in no module, because it was compiled at run time. Its page alone stands
    // for it.
    const std::uintptr_t start = caller ? caller.start() : address & ~std::uintptr_t{4095};
    slot->start.store(start, std::memory_order_release);
    slot->end.store(caller ? caller.end() : start + 4096, std::memory_order_release);
  });
  return get_version;
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
    // The function that is called may be a wrapper's, which throws.
    make_unwinder_ready();
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

}  // namespace

const driver::RealRuntime& real_runtime_for(const void* return_address, driver::Row row) {
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
  // If this thread is already inside the same call, a wrapper has called by name instead of by
  // RTLD_NEXT.
  const bool again = hooks::call_state.runtime_row == static_cast<std::uint16_t>(row) + 1;
  return again ? caller->bottom : caller->next;
}

void forget_callers_of_runtime() {
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
