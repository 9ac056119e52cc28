// Finds lines of Python functions in the tables that the interpreter keeps in their code objects.
#pragma once

#include <cstdint>

#include "runtime_hooks/ledger/read/views.hpp"

namespace cuwarden {

// Returns the source line of an instruction of a Python function; 0 if the instruction has none, or
// if the function's table of lines is damaged. `instruction`: index, from 0, of the instruction's
// unit of two bytes in the function's bytecode.
std::uint32_t python_line(const ledger::PythonCodeView& function, std::uint32_t instruction);

}  // namespace cuwarden
