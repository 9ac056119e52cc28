// The contents of device memory, compared through the host. Meshing relies on two addresses of one
// page showing the same contents.
#pragma once

#include <cstdint>

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::pool {

// Result of looking at the contents of device memory. `unknown`: the driver refused a copy to the
// host, or host memory was lacking.
enum class Contents : std::uint8_t { equal, different, unknown };

// Compares `bytes` bytes of device memory at the addresses `one` and `other`. The current context
// must be able to access both. Waits for the legacy default stream.
Contents compare(const driver::RealDriver&, std::uint64_t one, std::uint64_t other,
                 std::uint64_t bytes) noexcept;

// Writes to `bytes` bytes at the address `one`, and looks if they are found at the address `other`
// of the same memory; then the other way round. The bytes hold no data of the program, and get
// their old contents again. `bytes` is at least 1. Waits for the legacy default stream.
Contents write_and_compare(const driver::RealDriver&, std::uint64_t one, std::uint64_t other,
                           std::uint64_t bytes) noexcept;

}  // namespace cuwarden::pool
