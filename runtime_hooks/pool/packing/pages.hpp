// Pages of device memory: the driver maps and frees whole ones only.
#pragma once

#include <cstdint>

namespace cuwarden::pool {

// Bytes of a page: 2 MiB. The driver maps device memory in multiples of it.
inline constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20;
// Returns `bytes` (a size or an address), rounded down to a multiple of page_bytes.
constexpr std::uint64_t down_to_page(std::uint64_t bytes) { return bytes & ~(page_bytes - 1); }
// Returns `bytes` (a size or an address), rounded up to a multiple of page_bytes. Above the last
// multiple the sum wraps around to 0.
constexpr std::uint64_t up_to_page(std::uint64_t bytes) {
  return down_to_page(bytes + page_bytes - 1);
}

}  // namespace cuwarden::pool
