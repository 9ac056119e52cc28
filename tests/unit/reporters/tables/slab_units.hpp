// Sizes and addresses in tests of slabs, the pages from which the driver cuts small allocations.
#pragma once

#include <cstdint>

namespace cuwarden::test {

// Bytes of a kibibyte, of a mebibyte, and of a slab.
inline constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20, page = 2 * MiB;
// Address of the first slab.
inline constexpr std::uint64_t base = 0x7f00'0000'0000;

}  // namespace cuwarden::test
