// Functions of the Python interpreter of the process, as cuwarden calls them.
#pragma once

namespace cuwarden::shim {

// Functions and objects that CPython exports, as of its stable interface. Where a comment says so,
// the result is borrowed: the caller must not release it.
struct PythonFunctions {
  int (*is_initialized)();                          // Py_IsInitialized
  int (*add_pending_call)(int (*)(void*), void*);   // Py_AddPendingCall
  void* (*module_dict)();                           // PyImport_GetModuleDict: borrowed
  void* (*dict_item)(void*, const char*);           // PyDict_GetItemString: borrowed
  void* (*compile)(const char*, const char*, int);  // Py_CompileString
  void* (*execute)(const char*, void*);             // PyImport_ExecCodeModule
  // PyImport_ImportModuleLevel
  void* (*import)(const char*, void*, void*, void*, int);
  void* (*call)(void*, const char*, const char*, ...);  // PyObject_CallMethod
  void* (*make_function)(void*, void*, void*);          // PyCFunction_NewEx
  void (*retain)(void*);                                // Py_IncRef
  void (*release)(void*);                               // Py_DecRef
  int (*error_matches)(void*);                          // PyErr_ExceptionMatches
  void (*clear_error)();                                // PyErr_Clear
  void* none;                                           // _Py_NoneStruct: borrowed
  void** exception;                                     // PyExc_Exception
  void** attribute_error;                               // PyExc_AttributeError
  void** recursion_error;                               // PyExc_RecursionError
  void** memory_error;                                  // PyExc_MemoryError
  void* (*sys_object)(const char*);                     // PySys_GetObject: borrowed
  int (*set_sys_object)(const char*, void*);            // PySys_SetObject
  void* (*thread_state)();                              // PyThreadState_Get
  void* (*interpreter)();                               // PyInterpreterState_Get
  void* (*main_interpreter)();                          // PyInterpreterState_Main
  void* (*give_lock)();                                 // PyEval_SaveThread
  void (*take_lock)(void*);                             // PyEval_RestoreThread
  void (*enter_tracing)(void*);  // PyThreadState_EnterTracing; null before Python 3.11
  void (*leave_tracing)(void*);  // PyThreadState_LeaveTracing; null before Python 3.11
};

// The functions of the interpreter; valid once find_python() has returned true.
extern PythonFunctions python;

// Finds the interpreter among the objects that were loaded at the start, which are never unloaded.
// Returns false if there is none, or if another thread is just finding it. All threads may call it
// at any time.
bool find_python() noexcept;

// Suspends the program's trace and profile functions for a scope, where the interpreter can do so.
// To be made by a thread that holds the interpreter's lock.
class Untraced {
 public:
  Untraced() {
    if (python.enter_tracing == nullptr || python.leave_tracing == nullptr) return;
    thread_ = python.thread_state();
    if (thread_ != nullptr) python.enter_tracing(thread_);
  }
  ~Untraced() {
    if (thread_ != nullptr) python.leave_tracing(thread_);
  }
  Untraced(const Untraced&) = delete;
  Untraced& operator=(const Untraced&) = delete;

 private:
  void* thread_ = nullptr;  // the calling thread's state; null if nothing is suspended
};

}  // namespace cuwarden::shim
