// Stands in for the function of PyTorch's libc10.so by which its allocators report their memory to
// a profiler. Declarations are as in PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef SIGNED_SIZES
using ReportedSize = std::int64_t;  // PyTorch 1.9 to 1.13
#else
using ReportedSize = std::size_t;
#endif

namespace c10 {

// Kinds of devices that have memory.
enum class DeviceType : std::int8_t { CPU = 0, CUDA = 1 };

// A device: its kind, and its index among the devices of this kind (for CUDA the ordinal).
struct Device {
  DeviceType type;
  std::int8_t index;
};

// Reports that an allocator has handed out or taken back a block. `bytes`: size of the block;
// negative: it was freed. `allocated`, `reserved`: bytes that the allocator has handed out, and
// bytes that it has taken from CUDA.
void reportMemoryUsageToProfiler(void* address, std::int64_t bytes, ReportedSize allocated,
                                 ReportedSize reserved, Device device);
// Number of reports so far, and the bytes of the last one.
std::int64_t report_count();
std::int64_t last_report();

}  // namespace c10
