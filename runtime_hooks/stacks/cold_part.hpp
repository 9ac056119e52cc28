// Finds the code that a compiler has moved out of a function, because it expects it to run seldom.
#pragma once

#include "runtime_hooks/core/code_range.hpp"

namespace cuwarden::stacks {

// Returns the part of a function that lies apart from its main part. GCC calls it the function's
// name with ".cold" behind it, but a stripped file has no such name. This function follows direct
// jumps that leave the main part. A target belongs to the cold part if the unwind tables say that
// the frame is the same before and after the jump, and is already set up. Of several such parts,
// the one with the most jumps counts. Returns an empty range (0, 0) if there is none. `function`:
// the main part, with the address and size of the symbol table; its bytes must be readable. Takes
// about a microsecond for each jump that leaves the function and leads to another function.
CodeRange cold_part_of(CodeRange function) noexcept;

}  // namespace cuwarden::stacks
