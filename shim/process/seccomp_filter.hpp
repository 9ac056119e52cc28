// Reads a seccomp filter, to tell which system calls it lets through.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/mapping.hpp"

namespace cuwarden::shim {

// A copy of a filter that the program is about to install. Needs some memory and asks the kernel
// for nothing else.
class SeccompFilter {
 public:
  // `program` is what the program gives to the kernel; it may lie anywhere.
  explicit SeccompFilter(const sock_fprog* program) noexcept;

  // False if the kernel refuses to install the filter: it cannot be read, or it is too long.
  bool is_valid() const noexcept { return is_valid_; }

  // True if the system call is allowed whatever its arguments are. False without memory for a copy.
  // Calls that are only logged are allowed, too. Calls that fail, that end the thread or that
  // another process decides about are not.
  bool allows(std::uint32_t number) const noexcept;

 private:
  struct Reached;

  const sock_filter* instructions() const noexcept {
    return static_cast<const sock_filter*>(memory_.data());
  }
  Reached* states() const noexcept;

  bool is_valid_ = false;
  Mapping memory_;  // the instructions, then a state for each
  std::size_t count_ = 0;
};

}  // namespace cuwarden::shim
