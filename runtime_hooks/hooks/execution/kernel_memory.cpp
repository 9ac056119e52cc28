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

ledger::ImplicitChange launch_memory_by_use(const driver::RealDriver& real, DeviceOrdinal device,
                                            std::int64_t taken, std::uint64_t more_local_bytes,
                                            std::uint64_t heap_bytes, bool only_local) {
  ledger::ImplicitChange change;
  if (more_local_bytes != 0)
    change.local_memory_bytes = std::min(
        taken, static_cast<std::int64_t>(resident_threads(real, device) * more_local_bytes));
  change.heap_bytes = heap_among(taken - change.local_memory_bytes, heap_bytes);
  if (more_local_bytes != 0 && only_local) change.local_memory_bytes = taken - change.heap_bytes;
  change.module_bytes = taken - change.local_memory_bytes - change.heap_bytes;
  return change;
}

}  // namespace cuwarden::hooks
