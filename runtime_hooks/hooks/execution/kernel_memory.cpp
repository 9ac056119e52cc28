#include "runtime_hooks/hooks/execution/kernel_memory.hpp"

#include <algorithm>

namespace cuwarden::hooks {
namespace {

// Upper bound of the code that may be loaded together with a heap.
constexpr std::uint64_t most_heap_code_bytes = 8 << 20;

}  // namespace

std::uint64_t resident_threads(const driver::RealDriver& real, DeviceOrdinal device) {
  int processors = 0, threads = 0;
  if (real.cuDeviceGetAttribute == nullptr ||
      real.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                device.value) != CUDA_SUCCESS ||
      real.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                device.value) != CUDA_SUCCESS ||
      processors <= 0 || threads <= 0)
    return 0;
  return static_cast<std::uint64_t>(processors) * static_cast<std::uint64_t>(threads);
}

std::int64_t heap_among(std::int64_t taken, std::uint64_t heap_bytes) {
  const auto heap = static_cast<std::int64_t>(std::min(heap_bytes, most_heap_bytes));
  const auto most = heap + static_cast<std::int64_t>(heap_management_bytes);
  if (heap == 0 || taken < heap || taken > most + static_cast<std::int64_t>(most_heap_code_bytes))
    return 0;
  return std::min(taken, most);
}

}  // namespace cuwarden::hooks
