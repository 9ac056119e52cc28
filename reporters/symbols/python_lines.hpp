// Lines of Python functions, from the tables that the interpreter keeps in their code objects.
#pragma once

#include <cstdint>

#include "runtime_hooks/ledger/read/views.hpp"

namespace cuwarden {

// Returns the source line of an instruction of the function; 0 if it has none, or if the table is
// damaged. `instruction`: number of the unit of two bytes, from the start of the bytecode.
std::uint32_t python_line(const ledger::PythonCodeView& function, std::uint32_t instruction);

}  // namespace cuwarden
