// The Python interpreter that was loaded into this process when it started.
#pragma once

#include <cstdint>
#include <string>

#include "runtime_hooks/core/python_symbols.hpp"

namespace cuwarden::shim {

// Looks for an interpreter (CPython) among the objects that were loaded before the program ran: the
// program itself, or libpython. They are never unloaded. Fills the parameter with the addresses of
// the first one's functions and variables, and returns true. Returns false if there is none; the
// parameter's contents then mean nothing.
bool find_python_interpreter(PythonSymbols&) noexcept;

// Returns a sentence for the user: the stacks have no Python frames, because this build of Python
// cannot be read. `version`: 0x030e for 3.14; 0: before 3.9. May throw std::bad_alloc.
std::string without_python_frames(std::uint32_t version);

}  // namespace cuwarden::shim
