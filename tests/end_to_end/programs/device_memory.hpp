// The free and the used memory of the current device, as the runtime or the driver tells. Device
// code includes this header, too: C++17.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/end_to_end/programs/require.hpp"

namespace cuwarden::test {

// Numbers of bytes of a device, in all processes together.
struct DeviceMemory {
  // Bytes that are not in use, and bytes that the device has in all.
  std::size_t free = 0, total = 0;
  // Returns the bytes that are in use.
  long long used() const { return static_cast<long long>(total) - static_cast<long long>(free); }
};

// Returns the current device's memory as cudaMemGetInfo tells. Ends the program if that call fails.
inline DeviceMemory device_memory() {
  DeviceMemory memory;
  REQUIRE(cudaMemGetInfo(&memory.free, &memory.total));
  return memory;
}
// Returns the free bytes of the current device, as device_memory() does.
inline std::size_t free_bytes() { return device_memory().free; }
// Returns the used bytes of the current device, as device_memory() does.
inline long long used_bytes() { return device_memory().used(); }

// Readings for programs that do not link the runtime.
namespace by_driver {

// Returns the memory of the current context's device as cuMemGetInfo tells. Ends the program if
// that call fails.
inline DeviceMemory device_memory() {
  DeviceMemory memory;
  REQUIRE(cuMemGetInfo(&memory.free, &memory.total));
  return memory;
}
// Returns the free bytes of the current context's device, as device_memory() does.
inline std::size_t free_bytes() { return device_memory().free; }
// Returns the used bytes of the current context's device, as device_memory() does.
inline long long used_bytes() { return device_memory().used(); }

}  // namespace by_driver
}  // namespace cuwarden::test
