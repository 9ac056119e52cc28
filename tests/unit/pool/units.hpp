// Units of size in which tests of the pool count.
#pragma once

#include <cstdint>

namespace cuwarden::pool {

// Bytes of a kibibyte, of a mebibyte, and of a page of the device.
inline constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB, page = 2 * MiB;

}  // namespace cuwarden::pool
