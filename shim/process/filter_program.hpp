// Interprets a seccomp filter (a BPF program), to tell which system calls it lets through.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/memory/mapping.hpp"

namespace cuwarden::shim {

// A copy of a seccomp filter that the program is about to install. The constructor makes system
// calls only to get memory and to check if the filter's addresses can be read.
class SeccompFilter {
 public:
  // Copies the filter. `program`: the pointer that the program passes to the kernel. It may be null
  // or point to memory that cannot be read; is_valid() tells.
  explicit SeccompFilter(const sock_fprog* program) noexcept;

  // True if the filter can be read and has 1 to 4,096 instructions (BPF_MAXINSNS). If false, the
  // kernel refuses to install it. True for any filter but null while is_probing_forbidden() is
  // true: it is not read then, and allows() is false.
  bool is_valid() const noexcept { return is_valid_; }

  // True if it is certain that the filter allows the system call of this number (SYS_...) with any
  // arguments, or allows and logs it. False if the filter may make the call fail, end the thread or
  // the process, or ask a tracer or another process. False also if the filter is not valid, could
  // not be copied, or decides by values that this class does not follow, such as products.
  bool allows(std::uint32_t number) const noexcept;

 private:
  // Values of the filter's registers, as far as they are known, before one of its instructions.
  struct Reached;

  // Returns the copied instructions of the filter, of which there are count_.
  const sock_filter* instructions() const noexcept {
    return static_cast<const sock_filter*>(memory_.data());
  }
  // Returns the array in memory_ that has a Reached for each instruction: what is known of the
  // registers before it.
  Reached* states() const noexcept;

  // Result of is_valid(): true if the kernel would take the filter, as far as its length tells.
  bool is_valid_ = false;
  // Memory with a copy of the filter's instructions, and behind them a Reached for each. Empty if
  // there was no memory.
  Mapping memory_;
  // Number of the filter's instructions in memory_; 0 if they were not copied.
  std::size_t count_ = 0;
};

}  // namespace cuwarden::shim
