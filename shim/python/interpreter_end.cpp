#include "shim/python/interpreter_end.hpp"

#include <unistd.h>

#include <atomic>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/python/python_functions.hpp"

namespace cuwarden::shim {
namespace {

// Called once the interpreter is about to end.
constinit std::atomic<void (*)() noexcept> on_end{nullptr};

// The process that has queued the call: a forked child inherits the queue, and the registration.
constinit std::atomic<pid_t> asking_process{0};
constinit std::atomic<bool> is_registered{false};

// Called by Python's module atexit, after all functions that were registered later. Other threads
// may need the interpreter's lock meanwhile.
void* interpreter_ends(void*, void*) {
  is_registered.store(false);
  void* const thread = python.give_lock();
  on_end.load(std::memory_order_relaxed)();
  python.take_lock(thread);
  python.retain(python.none);
  return python.none;
}

// Python's PyMethodDef.
struct Method {
  const char* name;
  void* (*function)(void*, void*);
  int flags;
  const char* documentation;
};
constexpr int no_arguments = 4;  // METH_NOARGS
constinit Method method{"cuwarden_interpreter_ends", interpreter_ends, no_arguments, nullptr};

// Runs in the interpreter's main thread, which holds the interpreter's lock. Returns -1 with an
// exception set if the program is to get it, such as KeyboardInterrupt. Before Python 3.12, the
// thread may run a sub-interpreter, whose end is not meant.
int register_end(void*) {
  if (is_confined() || asking_process.load(std::memory_order_relaxed) != getpid() ||
      python.is_initialized() == 0 || python.interpreter() != python.main_interpreter() ||
      is_registered.exchange(true))
    return 0;
  const Untraced untraced;
  void* const function = python.make_function(&method, nullptr, nullptr);
  void* exits = nullptr;
  if (function != nullptr) {
    exits = python.dict_item(python.module_dict(), "atexit");
    if (exits != nullptr)
      python.retain(exits);
    else
      exits = python.import("atexit", nullptr, nullptr, nullptr, 0);
  }
  void* const result = exits == nullptr ? nullptr : python.call(exits, "register", "O", function);
  for (void* const made : {function, exits, result})
    if (made != nullptr) python.release(made);
  if (result != nullptr) return 0;
  is_registered.store(false);
  if (python.error_matches(*python.exception) == 0) return -1;
  python.clear_error();
  return 0;
}

}  // namespace

void expect_interpreters_end(void (*ends)() noexcept) noexcept {
  if (is_confined()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  if (!find_python() || python.is_initialized() == 0) return;
  on_end.store(ends, std::memory_order_relaxed);
  asking_process.store(getpid());
  // If the interpreter has too many calls pending, its end comes unnoticed.
  python.add_pending_call(register_end, nullptr);
}

}  // namespace cuwarden::shim
