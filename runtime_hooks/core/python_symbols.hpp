// Functions and objects that a loaded Python interpreter (CPython) exports.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/code_range.hpp"

namespace cuwarden {

// Addresses of functions and objects that a Python interpreter exports. Functions lie in the
// interpreter's file: libpython, or the program. An object may lie in the program although the
// interpreter is libpython, because the linker can copy it there. A pointer is null if this version
// of Python has no such function or object.
struct PythonSymbols {
  void* (*thread_state)() = nullptr;  // PyGILState_GetThisThreadState; null: no Python was found
  int (*is_initialized)() = nullptr;  // Py_IsInitialized; null: no Python was found
  // PyCode_Type: the type of code objects; null: no Python was found.
  const void* code_type = nullptr;
  // PyUnicode_Type: the type of str objects; null: no loaded object exports it.
  const void* text_type = nullptr;
  // PyBytes_Type: the type of bytes objects; null: no loaded object exports it.
  const void* bytes_type = nullptr;
  // _PyRuntime: the state of the whole interpreter; null: no loaded object exports it.
  const void* runtime = nullptr;
  // Py_Version, such as 0x030c01f0 for 3.12.1; null before Python 3.11, which does not have it.
  const unsigned long* version = nullptr;
  bool has_iterator_send = false;  // true if PyIter_Send is exported, as by Python 3.10 and later
  bool has_add_type = false;  // true if PyModule_AddType is exported, as by Python 3.9 and later
  // Addresses of the interpreter's file (libpython or the program) in memory; empty: no Python was
  // found.
  CodeRange file{};
  // The code of the function _PyEval_EvalFrameDefault, which runs Python code; empty if it was not
  // found. `evaluation_cold`: the part of it that the compiler has put elsewhere; empty if there is
  // none, or if it was not found or not looked for.
  CodeRange evaluation{}, evaluation_cold{};
  // True if the address lies in the code of _PyEval_EvalFrameDefault, as far as it was found.
  bool is_evaluation(std::uint64_t address) const noexcept {
    return evaluation.contains(address) || evaluation_cold.contains(address);
  }
  // True if the interpreter's file has no other code than the interpreter's: it is libpython, or a
  // program whose file name begins with "python".
  bool has_interpreter_alone = false;
};

}  // namespace cuwarden
