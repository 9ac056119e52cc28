#include "shim/python/interpreter_calls.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "shim/python/module_text.hpp"
#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

// Functions and objects that CPython exports, as of its stable interface.
struct PythonFunctions {
  int (*is_initialized)();                              // Py_IsInitialized
  int (*add_pending_call)(int (*)(void*), void*);       // Py_AddPendingCall
  void* (*module_dict)();                               // PyImport_GetModuleDict: borrowed
  void* (*dict_item)(void*, const char*);               // PyDict_GetItemString: borrowed
  void* (*compile)(const char*, const char*, int);      // Py_CompileString
  void* (*execute)(const char*, void*);                 // PyImport_ExecCodeModule
  void* (*call)(void*, const char*, const char*, ...);  // PyObject_CallMethod
  void (*retain)(void*);                                // Py_IncRef
  void (*release)(void*);                               // Py_DecRef
  int (*error_matches)(void*);                          // PyErr_ExceptionMatches
  void (*clear_error)();                                // PyErr_Clear
  void** import_error;                                  // PyExc_ImportError
  void** attribute_error;                               // PyExc_AttributeError
  void** syntax_error;                                  // PyExc_SyntaxError
};

template <class Pointer>
bool take(Pointer& to, const LoadedObject& object, std::string_view name) {
  to = reinterpret_cast<Pointer>(object.find_any(name).address);
  return to != nullptr;
}

// Returns false if the object exports no interpreter.
bool read(const LoadedObject& object, PythonFunctions& found) {
  return take(found.is_initialized, object, "Py_IsInitialized") &&
         take(found.add_pending_call, object, "Py_AddPendingCall") &&
         take(found.module_dict, object, "PyImport_GetModuleDict") &&
         take(found.dict_item, object, "PyDict_GetItemString") &&
         take(found.compile, object, "Py_CompileString") &&
         take(found.execute, object, "PyImport_ExecCodeModule") &&
         take(found.call, object, "PyObject_CallMethod") &&
         take(found.retain, object, "Py_IncRef") && take(found.release, object, "Py_DecRef") &&
         take(found.error_matches, object, "PyErr_ExceptionMatches") &&
         take(found.clear_error, object, "PyErr_Clear") &&
         take(found.import_error, object, "PyExc_ImportError") &&
         take(found.attribute_error, object, "PyExc_AttributeError") &&
         take(found.syntax_error, object, "PyExc_SyntaxError");
}

PythonFunctions python{};  // valid once `known` is `found`
enum class Known : std::uint32_t { not_yet, being_stored, found };
constinit std::atomic<Known> known{Known::not_yet};

// Returns false if there is no interpreter, or if another thread is just finding it.
bool find_python() noexcept {
  Known now = known.load(std::memory_order_acquire);
  if (now != Known::not_yet) return now == Known::found;
  PythonFunctions found{};
  const bool exists =
      any_loaded_object([&](const LoadedObject& object) { return read(object, found); });
  if (!exists || !known.compare_exchange_strong(now, Known::being_stored)) return false;
  python = found;
  known.store(Known::found, std::memory_order_release);
  return true;
}

// Returns the module of this name, a new reference; null with an exception set. Imports it from the
// shim's text unless the program has imported one.
void* import_module(const PythonModule& module) {
  constexpr int file_input = 257;  // Py_file_input
  if (void* const there = python.dict_item(python.module_dict(), module.name)) {
    python.retain(there);
    return there;
  }
  void* const code = python.compile(module.text, "<cuwarden>", file_input);
  if (code == nullptr) return nullptr;
  void* const made = python.execute(module.name, code);
  python.release(code);
  return made;
}

// The process that has queued the last call. A forked child inherits the queue.
constinit std::atomic<pid_t> asking_process{0};

// Runs in the interpreter's main thread, which holds the interpreter's lock. `incident`: its
// number. Returns -1 with an exception set if the program is to get it, such as KeyboardInterrupt:
// a signal may come meanwhile.
int run_in_interpreter(void* incident) {
  if (asking_process.load(std::memory_order_relaxed) != getpid()) return 0;
  const auto number = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(incident));
  void* last = nullptr;
  for (const PythonModule& module : python_modules) {
    if (last != nullptr) python.release(last);
    last = import_module(module);
    if (last == nullptr) break;
  }
  void* const result =
      last == nullptr ? nullptr : python.call(last, "_cuwarden_observe", "I", number);
  if (last != nullptr) python.release(last);
  if (result != nullptr) {
    python.release(result);
    return 0;
  }
  // This Python lacks something that the modules need, or the program has a module of their name.
  for (void** const ours : {python.import_error, python.attribute_error, python.syntax_error}) {
    if (python.error_matches(*ours) == 0) continue;
    python.clear_error();
    return 0;
  }
  return -1;
}

}  // namespace

constinit InterpreterCalls interpreter_calls;

void InterpreterCalls::ask(IncidentId incident) noexcept {
  if (!is_on_.load(std::memory_order_relaxed) || is_confined()) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  if (!find_python() || python.is_initialized() == 0) return;
  asking_process.store(getpid(), std::memory_order_relaxed);
  // If the interpreter has too many calls pending, the figures of this moment are missing.
  python.add_pending_call(run_in_interpreter,
                          reinterpret_cast<void*>(std::uintptr_t{incident.value}));
}

}  // namespace cuwarden::shim
