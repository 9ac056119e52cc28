// Finds the rule for leaving the frame of an address in the code, by the unwind tables (.eh_frame)
// of the module that holds it. Takes hundreds of nanoseconds; callers cache the result.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/code_range.hpp"
#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

// A rule for leaving the frame of a code address, as learn_rule() has found it in unwind tables.
struct Learned {
  // Tells how a stack walk gets from the frame to its caller's, or why it cannot.
  Rule rule;
  // True if the rule holds as long as the module with the code is loaded. False for code of no
  // module, which may be replaced at any time. False, too, for an interrupted instruction that no
  // unwind table describes.
  bool lasts = false;
};

// Returns the rule for leaving the frame of the code address `address`, from the unwind tables
// (.eh_frame) of the module that holds it. `interrupted`: true if `address` is that of an
// instruction, such as one that a signal interrupted or a jump; false if it lies inside a call
// instruction. Takes hundreds of nanoseconds, so callers keep the rule.
//
// For code of no module, the rule is Rule::Special::foreign_code: the walk ends there. libgcc is
// not asked, although a JIT compiler may have described its code to the program's libgcc. Before
// version 13, libgcc answers under a lock, whose holder the walk may have interrupted.
Learned learn_rule(std::uint64_t address, bool interrupted) noexcept;

// Returns the code around `address` that one entry of a module's unwind table describes: a
// function, or a part of one. Returns an empty range if no entry describes the address, or if the
// entry is malformed.
CodeRange described_code(std::uint64_t address) noexcept;

}  // namespace cuwarden::stacks
