// Finds the code that a compiler has moved out of a function, because it expects it to run seldom.
#pragma once

#include "runtime_hooks/core/code_range.hpp"

namespace cuwarden::stacks {

// Returns the part of a function that lies apart from its other code: GCC calls it the function's
// name with ".cold" behind it, but a stripped file has no such name. Found by the unwind tables:
// the function jumps into it, and it begins with a frame that is already set up. Returns an empty
// range if there is none. `function`: the other code, as the symbol table has it; it must be
// readable. Takes about a microsecond for each jump that leaves the function.
CodeRange cold_part_of(CodeRange function) noexcept;

}  // namespace cuwarden::stacks
