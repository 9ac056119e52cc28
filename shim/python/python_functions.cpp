#include "shim/python/python_functions.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {

PythonFunctions python{};  // valid once `known_python` is `found`

namespace {

template <class Pointer>
bool find_in(Pointer& to, const LoadedObject& object, std::string_view name) {
  to = reinterpret_cast<Pointer>(object.find_any(name).address);
  return to != nullptr;
}

// Returns false if the object exports no interpreter.
bool read(const LoadedObject& object, PythonFunctions& found) {
  find_in(found.enter_tracing, object, "PyThreadState_EnterTracing");
  find_in(found.leave_tracing, object, "PyThreadState_LeaveTracing");
  return find_in(found.is_initialized, object, "Py_IsInitialized") &&
         find_in(found.add_pending_call, object, "Py_AddPendingCall") &&
         find_in(found.module_dict, object, "PyImport_GetModuleDict") &&
         find_in(found.dict_item, object, "PyDict_GetItemString") &&
         find_in(found.compile, object, "Py_CompileString") &&
         find_in(found.execute, object, "PyImport_ExecCodeModule") &&
         find_in(found.import, object, "PyImport_ImportModuleLevel") &&
         find_in(found.call, object, "PyObject_CallMethod") &&
         find_in(found.make_function, object, "PyCFunction_NewEx") &&
         find_in(found.retain, object, "Py_IncRef") &&
         find_in(found.release, object, "Py_DecRef") &&
         find_in(found.error_matches, object, "PyErr_ExceptionMatches") &&
         find_in(found.clear_error, object, "PyErr_Clear") &&
         find_in(found.none, object, "_Py_NoneStruct") &&
         find_in(found.exception, object, "PyExc_Exception") &&
         find_in(found.attribute_error, object, "PyExc_AttributeError") &&
         find_in(found.recursion_error, object, "PyExc_RecursionError") &&
         find_in(found.memory_error, object, "PyExc_MemoryError") &&
         find_in(found.sys_object, object, "PySys_GetObject") &&
         find_in(found.set_sys_object, object, "PySys_SetObject") &&
         find_in(found.interpreter, object, "PyInterpreterState_Get") &&
         find_in(found.main_interpreter, object, "PyInterpreterState_Main") &&
         find_in(found.give_lock, object, "PyEval_SaveThread") &&
         find_in(found.take_lock, object, "PyEval_RestoreThread") &&
         find_in(found.thread_state, object, "PyThreadState_Get");
}

enum class Known : std::uint32_t { not_yet, being_stored, found };
constinit std::atomic<Known> known_python{Known::not_yet};

}  // namespace

bool find_python() noexcept {
  Known now = known_python.load(std::memory_order_acquire);
  if (now != Known::not_yet) return now == Known::found;
  PythonFunctions found{};
  std::size_t left = detail::startup_object_count();
  const bool exists = any_loaded_object(
      [&](const LoadedObject& object) { return left != 0 && left-- != 0 && read(object, found); });
  if (!exists || !known_python.compare_exchange_strong(now, Known::being_stored)) return false;
  python = found;
  known_python.store(Known::found, std::memory_order_release);
  return true;
}

}  // namespace cuwarden::shim
