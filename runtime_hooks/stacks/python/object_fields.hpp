// Reads fields of the interpreter's objects in memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime_hooks/core/memory/readable.hpp"
#include "runtime_hooks/stacks/python/layout.hpp"

namespace cuwarden::stacks::python {

// Reads a field at an address that is known to be readable.
template <class T>
__attribute__((always_inline)) inline T at(std::uint64_t address) noexcept {
  T value;
  __builtin_memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

// True if `bytes` bytes from `address` on can be read; less than eight count as eight. The kernel
// is asked once for each 4 KiB that is begun, and once for the last eight bytes. False below
// address 4,096, from 2^47 on, and if a seccomp filter forbids the questions.
inline bool can_read(std::uint64_t address, std::uint64_t bytes) noexcept {
  if (address < 4096 || address + bytes < address || address + bytes >= std::uint64_t{1} << 47)
    return false;
  for (std::uint64_t offset = 0; offset < bytes; offset += 4096)
    if (!is_readable(reinterpret_cast<const void*>(address + offset))) return false;
  return is_readable(
      reinterpret_cast<const void*>(address + std::max<std::uint64_t>(bytes, 8) - 8));
}

// True if the address is a multiple of 8, and `bytes` bytes from there on can be read, as
// can_read() tells.
inline bool can_read_aligned(std::uint64_t address, std::uint64_t bytes) noexcept {
  return address % 8 == 0 && can_read(address, bytes);
}

// True if an object of `bytes` bytes with this type can be read at the address. `type`: address of
// the type; if it is null, the result is false.
inline bool is_object(std::uint64_t address, std::uint64_t bytes, const void* type) noexcept {
  return type != nullptr && can_read_aligned(address, bytes) &&
         at<std::uint64_t>(address + object_type) == reinterpret_cast<std::uint64_t>(type);
}

}  // namespace cuwarden::stacks::python
