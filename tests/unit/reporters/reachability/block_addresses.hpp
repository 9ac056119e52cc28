// Addresses of blocks that do not exist, for tests of the search for pointers.
#pragma once

#include <cstdint>

namespace cuwarden::reachability {

// Bytes of each block.
inline constexpr std::uint64_t block_bytes = 0x8'0000;

// Returns the address of block i with all bits inverted. The kernel gives no process memory there.
constexpr std::uint64_t inverted_address(std::uint32_t i) {
  return ~(0x0000'8123'4500'0000ULL + i * 0x10'0000ULL);
}

}  // namespace cuwarden::reachability
