// The function by which PyTorch's allocators tell a profiler of their memory, as libc10.so declares
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef SIGNED_SIZES
using ReportedSize = std::int64_t;  // PyTorch 1.9 to 1.13
#else
using ReportedSize = std::size_t;
#endif

namespace c10 {

enum class DeviceType : std::int8_t { CPU = 0, CUDA = 1 };

struct Device {
  DeviceType type;
  std::int8_t index;
};

void reportMemoryUsageToProfiler(void* address, std::int64_t bytes, ReportedSize allocated,
                                 ReportedSize reserved, Device device);
// Number of reports so far, and the bytes of the last one.
std::int64_t report_count();
std::int64_t last_report();

}  // namespace c10
