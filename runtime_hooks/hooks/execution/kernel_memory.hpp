// Device memory that the driver takes for kernels: their code, local memory of threads, and the
// heap of device-side malloc.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::hooks {

// Largest heap of device-side malloc (measured: a limit of 300 GiB gave a heap of this size).
inline constexpr std::uint64_t most_heap_bytes = std::uint64_t{16'862} << 20;
// Bytes that the driver takes to manage a heap (measured).
inline constexpr std::uint64_t heap_management_bytes = 2 << 20;

// Returns the number of threads that the device can hold at once; 0 if the driver does not say.
std::uint64_t resident_threads(const driver::RealDriver&, DeviceOrdinal);

// Returns how many of the bytes that one call took are the heap of device-side malloc. `taken`:
// bytes that the call took. `heap_bytes`: limit that is set for the heap. Returns 0 if `taken` does
// not fit a heap of that limit.
std::int64_t heap_among(std::int64_t taken, std::uint64_t heap_bytes);

// Divides the device memory that a kernel's first launch took into local memory of threads, the
// heap of device-side malloc, and code. `taken`: bytes that the launch took. `more_local_bytes`:
// local memory of a thread beyond that of all kernels before. `heap_bytes`: limit of a heap that
// may have been made. `only_local`: true if all that is not heap counts as local memory. It is
// false for the process's first launch, which takes memory that its kernel does not need.
ledger::ImplicitChange launch_memory_by_use(const driver::RealDriver&, DeviceOrdinal,
                                            std::int64_t taken, std::uint64_t more_local_bytes,
                                            std::uint64_t heap_bytes, bool only_local);

}  // namespace cuwarden::hooks
