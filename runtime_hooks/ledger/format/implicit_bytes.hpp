// What a device gave to calls that were not asked for memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

struct ImplicitBytes {
  std::uint64_t used_after_first_context = 0;  // with what other processes had; 0: not seen
  std::uint64_t further_contexts = 0;
  std::uint64_t modules = 0, local_memory = 0, heap = 0, streams = 0;
  std::uint64_t largest_local = 0;  // a thread, of the kernel that needs most

  // What was in use inside a device's first context has what other processes had in it. No context
  // takes so much by itself (measured: 527 MiB on an H200): then the number says nothing of it.
  static constexpr std::uint64_t largest_context = std::uint64_t{1} << 30;
  std::uint64_t contexts() const noexcept {
    return (used_after_first_context <= largest_context ? used_after_first_context : 0) +
           further_contexts;
  }
};

// As the fields are at this moment: whether they belong together the row's version tells.
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
