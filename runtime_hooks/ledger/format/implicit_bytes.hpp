// Device memory that the driver took by itself in calls that do not request memory, such as the
// creation of a context or the loading of code.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

// Memory of one device, in bytes, that the driver took by itself in calls that do not request
// memory. 0: none was measured.
struct ImplicitBytes {
  // Bytes of the device that were in use just after this process's first context came up there,
  // less bytes that the driver has given back since. Memory of other processes is included;
  // allocations that this process had recorded by then are not.
  std::uint64_t used_after_first_context = 0;
  std::uint64_t further_contexts = 0;  // bytes taken by this process's contexts after the first one
  // Bytes that the driver took for loaded code; 0: none was measured. This number and the next four
  // include memory that the driver keeps after the code was unloaded, or the object destroyed.
  std::uint64_t modules = 0;
  std::uint64_t local_memory = 0;  // bytes taken by the driver for kernels' local memory
  std::uint64_t heap = 0;          // bytes taken by the driver for malloc() in kernels
  std::uint64_t streams = 0;       // bytes taken by the driver for streams
  std::uint64_t graphs = 0;        // bytes taken by the driver for executable graphs
  // Bytes of local memory for one thread of the kernel that needed most, among the kernels that
  // were launched or captured. Starts again at 0 when the device's last context ends. A kernel
  // counts only if it needs more than its context gives each thread anyway: 1 KiB, or the number
  // that cuCtxSetLimit has set. 0: no kernel needed more.
  std::uint64_t largest_local = 0;

  // Upper bound of a context's own size in bytes (measured: 527 MiB on an H200). If
  // used_after_first_context is larger, most of it is other processes' memory, and the size of the
  // first context is unknown.
  static constexpr std::uint64_t largest_context = std::uint64_t{1} << 30;
  // Returns all bytes of the device that the driver took by itself (not for requests of memory),
  // except those of the first context.
  std::uint64_t beside_first_context() const noexcept {
    return further_contexts + modules + local_memory + heap + streams + graphs;
  }
  // Returns all bytes of the device that the driver took by itself, including those of contexts().
  std::uint64_t all() const noexcept {
    return contexts() + modules + local_memory + heap + streams + graphs;
  }
  // Returns the bytes that this process's contexts take on the device. Memory of other processes in
  // used_after_first_context counts as a part of the first context. If used_after_first_context
  // exceeds largest_context, the first context's size is unknown, and the result leaves it out.
  std::uint64_t contexts() const noexcept {
    return (used_after_first_context <= largest_context ? used_after_first_context : 0) +
           further_contexts;
  }
};

// Copies the device's numbers of memory that the driver took by itself, one after the other. They
// belong together only if Device::version (a seqlock) was even and did not change during the call,
// which the caller checks.
inline ImplicitBytes implicit_bytes_of(const Device& device) noexcept {
  const auto get = [](const std::atomic<std::uint64_t>& field) {
    return field.load(std::memory_order_acquire);
  };
  return {.used_after_first_context = get(device.used_after_first_context_bytes),
          .further_contexts = get(device.context_bytes),
          .modules = get(device.module_bytes),
          .local_memory = get(device.local_memory_bytes),
          .heap = get(device.heap_bytes),
          .streams = get(device.stream_bytes),
          .graphs = get(device.graph_bytes),
          .largest_local = get(device.largest_local_bytes)};
}

}  // namespace cuwarden::ledger
