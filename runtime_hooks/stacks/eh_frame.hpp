// Finds the rule for leaving the frame of an address in the code, by the unwind tables (.eh_frame)
// of the module that holds it. Takes hundreds of nanoseconds; callers cache the result.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

// The result of learn_rule().
struct Learned {
  // The way from the frame to its caller's, or the reason why there is none.
  Rule rule;
  // True if the rule holds as long as the code's module is loaded. False for code of no module,
  // which may be replaced at any time.
  bool lasts = false;
};

// Returns the rule for leaving the frame of `address`, from the unwind tables (.eh_frame) of the
// module that holds it. `address` lies inside a call instruction; if `interrupted` is true, it is
// that of an instruction that a signal interrupted. Takes hundreds of nanoseconds, so callers keep
// the rule.
//
// For code of no module, libgcc is not asked, although a JIT compiler may have described its code
// to the program's libgcc. Versions of libgcc before 13 answer under a lock, whose holder the walk
// may have interrupted.
Learned learn_rule(std::uint64_t address, bool interrupted) noexcept;

}  // namespace cuwarden::stacks
