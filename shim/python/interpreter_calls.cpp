#include "shim/python/interpreter_calls.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <initializer_list>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/python/module_text.hpp"
#include "shim/python/python_functions.hpp"

namespace cuwarden::shim {
namespace {

// Returns the module, a new reference; null with an exception set. Imports it from the shim's text
// unless the program has imported one. A program may put back an older sys.modules, so the module
// is an attribute of the module sys, too.
void* import_module(const PythonModule& module) {
  constexpr int file_input = 257;  // Py_file_input
  void* known_module = python.sys_object(module.kept_as);
  if (known_module == nullptr) known_module = python.dict_item(python.module_dict(), module.name);
  if (known_module != nullptr) {
    python.retain(known_module);
    return known_module;
  }
  void* const code = python.compile(module.text, "<cuwarden>", file_input);
  if (code == nullptr) return nullptr;
  void* const made = python.execute(module.name, code);
  python.release(code);
  if (made != nullptr && python.set_sys_object(module.kept_as, made) != 0) python.clear_error();
  return made;
}

// Clears the exception that is set if it is of one of these classes. Returns true if it was.
bool clear_if(std::initializer_list<void**> classes) {
  for (void** const type : classes) {
    if (python.error_matches(*type) == 0) continue;
    python.clear_error();
    return true;
  }
  return false;
}

// Calls the modules for the incident. Returns -1 with an exception set if the program is to get it,
// such as KeyboardInterrupt: a signal may come meanwhile.
int call_modules(unsigned incident) {
  void* last = nullptr;
  for (const PythonModule& module : python_modules) {
    if (last != nullptr) python.release(last);
    last = import_module(module);
    if (last == nullptr) return clear_if({python.exception}) ? 0 : -1;
  }
  void* const result = python.call(last, "_cuwarden_observe", "I", incident);
  python.release(last);
  if (result != nullptr) {
    python.release(result);
    return 0;
  }
  // The program has a module of this name, or there is no room to call the modules.
  return clear_if({python.attribute_error, python.recursion_error, python.memory_error}) ? 0 : -1;
}

// The call that was queued, until it runs, and the process that has queued it, since a forked child
// inherits the queue.
constinit std::atomic<bool> is_queued{false};
constinit std::atomic<pid_t> asking_process{0};
// The last incident that was given to ask(), in the lower half; 0: none since the last call ran.
// The upper half is the time, in milliseconds of now_ns(), modulo 2^32. Both change together, so
// that no incident gets the time of another.
constinit std::atomic<std::uint64_t> asked_incident{0};

std::uint32_t now_ms() noexcept { return static_cast<std::uint32_t>(now_ns() / 1'000'000); }

// Runs in the interpreter's main thread, which holds the interpreter's lock.
int run_in_interpreter(void*) {
  constexpr std::uint32_t soon_ms = 1000;
  if (asking_process.load(std::memory_order_relaxed) != getpid()) return 0;
  is_queued.store(false);
  if (python.is_initialized() == 0) return 0;
  // Figures that come late are not those of the refused request.
  const std::uint64_t asked = asked_incident.exchange(0);
  const bool is_late = now_ms() - static_cast<std::uint32_t>(asked >> 32) > soon_ms;
  const Untraced untraced;
  return call_modules(is_late ? 0 : static_cast<std::uint32_t>(asked));
}

}  // namespace

constinit InterpreterCalls interpreter_calls;

void InterpreterCalls::ask(IncidentId incident) noexcept {
  if (!is_on_.load(std::memory_order_relaxed) || is_confined()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  if (!find_python() || python.is_initialized() == 0) return;
  const pid_t own = getpid();
  std::uint64_t inherited = asked_incident.load();
  if (asking_process.exchange(own) != own) {
    is_queued.store(false);
    // Another thread of this process may have stored an incident meanwhile, which stays.
    asked_incident.compare_exchange_strong(inherited, 0);
  }
  if (incident.value != 0) asked_incident.store(std::uint64_t{now_ms()} << 32 | incident.value);
  if (is_queued.exchange(true)) return;
  // If the interpreter has too many calls pending, the figures of this moment are missing.
  if (python.add_pending_call(run_in_interpreter, nullptr) != 0) is_queued.store(false);
}

}  // namespace cuwarden::shim
