// Recognises code of this shared object: its frames are left out of stacks.
#pragma once

#include <cstdint>

// The linker's symbols for the first byte of this shared object in memory, and for the end of its
// data.
extern "C" {
// The symbol lies at the first byte of this shared object in memory.
extern const char __ehdr_start __attribute__((visibility("hidden")));
// The symbol lies at the end of this shared object's data: the address after the last byte.
extern const char _end __attribute__((visibility("hidden")));
}

namespace cuwarden::stacks {

// True if the code address lies in this shared object, whose frames are left out of stacks. They
// are frames of hooks: the innermost ones, and further out that of a hooked function of CUDA's
// runtime, such as cudaMalloc.
[[gnu::always_inline]] inline bool is_own(std::uint64_t address) noexcept {
  const auto begin = reinterpret_cast<std::uint64_t>(&__ehdr_start);
  return address - begin < reinterpret_cast<std::uint64_t>(&_end) - begin;
}

}  // namespace cuwarden::stacks
