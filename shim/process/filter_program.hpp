// Interprets a seccomp filter (a BPF program), to tell which system calls it lets through.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/mapping.hpp"

namespace cuwarden::shim {

// A copy of a seccomp filter that the program is about to install. The constructor makes system
// calls only to get memory and to check if the filter's addresses can be read.
class SeccompFilter {
 public:
  // Copies the filter. `program`: the pointer that the host program gives to the kernel; it may be
  // null or point to memory that cannot be read.
  explicit SeccompFilter(const sock_fprog* program) noexcept;

  // False if the filter cannot be read, is empty or is too long; the kernel refuses to install it.
  bool is_valid() const noexcept { return is_valid_; }

  // True if the filter allows the system call of this number (SYS_...) with any arguments, or
  // allows and logs it. False if the filter may make the call fail, end the thread or the process,
  // or ask a tracer or another process. False also if the filter is not valid or could not be
  // copied.
  bool allows(std::uint32_t number) const noexcept;

 private:
  // State of the filter's registers before one of its instructions.
  struct Reached;

  const sock_filter* instructions() const noexcept {
    return static_cast<const sock_filter*>(memory_.data());
  }
  // Returns the array in memory_ with a Reached for each instruction: the registers before it.
  Reached* states() const noexcept;

  bool is_valid_ = false;
  Mapping memory_;         // the instructions, then a Reached for each of them
  std::size_t count_ = 0;  // number of instructions in memory_
};

}  // namespace cuwarden::shim
