// Device memory that calls took without being asked for memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

// Memory of a device, in bytes, that calls took without being asked for memory.
struct ImplicitBytes {
  // Bytes in use inside the first context, including other processes' memory; 0: not measured.
  std::uint64_t used_after_first_context = 0;
  std::uint64_t further_contexts = 0;
  std::uint64_t modules = 0, local_memory = 0, heap = 0, streams = 0;
  std::uint64_t largest_local = 0;  // bytes for one thread of the kernel that needs most

  // Upper bound of a context's own size in bytes (measured: 527 MiB on an H200). Since
  // used_after_first_context includes other processes' memory, a larger value of it says nothing
  // about the context.
  static constexpr std::uint64_t largest_context = std::uint64_t{1} << 30;
  std::uint64_t contexts() const noexcept {
    return (used_after_first_context <= largest_context ? used_after_first_context : 0) +
           further_contexts;
  }
};

// Returns the fields as they are at this moment. The caller checks by the row's version that they
// belong together.
inline ImplicitBytes implicit_bytes_of(const Device& device) noexcept {
  const auto get = [](const std::atomic<std::uint64_t>& field) {
    return field.load(std::memory_order_acquire);
  };
  return {get(device.used_after_first_context_bytes),
          get(device.context_bytes),
          get(device.module_bytes),
          get(device.local_memory_bytes),
          get(device.heap_bytes),
          get(device.stream_bytes),
          get(device.largest_local_bytes)};
}

}  // namespace cuwarden::ledger
