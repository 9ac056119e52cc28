// From an address in the code to the rule for leaving its frame, by the unwind tables (.eh_frame)
// of the module that holds it. Takes hundreds of nanoseconds; what it finds is cached.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

struct Learned {
  Rule rule;
  bool lasts = false;  // for as long as the module does; else the code may be replaced at any time
};

// `address` lies inside the call instruction, or is the interrupted instruction itself.
//
// Code of no module is not asked about, though a JIT compiler may have described it to the host's
// libgcc: versions before 13 answer under a lock, and a walk may have interrupted its holder.
Learned learn_rule(std::uint64_t address, bool interrupted) noexcept;

}  // namespace cuwarden::stacks
