// Units of time and size in which tests of reporters count.
#pragma once

#include <cstdint>

namespace cuwarden::test {

// Nanoseconds of a second, and bytes of a mebibyte.
inline constexpr std::uint64_t second_ns = 1'000'000'000, mib = 1 << 20;

}  // namespace cuwarden::test
