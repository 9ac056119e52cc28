// From an address in the code to the rule for leaving its frame, by the unwind tables (.eh_frame)
// of the module that holds it. Takes hundreds of nanoseconds; what it finds is cached.
#pragma once

#include <cstdint>

#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

// As libgcc has it: the host's own copy is asked for code that was registered with that one.
struct FoundFunction {
  void* text_base;
  void* data_base;
  void* begin;
};
using FindDescription = const void* (*)(void* address, FoundFunction*);

struct Learned {
  Rule rule;
  bool lasts = false;  // for as long as the module does; else the code may be replaced at any time
};

// `address` lies inside the call instruction, or is the interrupted instruction itself. `host` may
// be null.
Learned learn_rule(std::uint64_t address, bool interrupted, FindDescription host) noexcept;

}  // namespace cuwarden::stacks
