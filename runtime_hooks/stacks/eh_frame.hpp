// Finds the rule for leaving the frame of an address in the code, by the unwind tables (.eh_frame)
// of the module that holds it. Takes hundreds of nanoseconds; callers cache the result.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

struct Learned {
  Rule rule;
  // True if the rule holds as long as its module is loaded; false if the code may be replaced at
  // any time.
  bool lasts = false;
};

// Returns the rule for the frame of `address`, which lies inside a call instruction. If
// `interrupted`, `address` is the instruction itself that a signal interrupted.
//
// For code of no module, libgcc is not asked, although a JIT compiler may have described the code
// to the host's libgcc. Versions before 13 answer under a lock, and the walk may have interrupted
// its holder.
Learned learn_rule(std::uint64_t address, bool interrupted) noexcept;

}  // namespace cuwarden::stacks
