// Kernels that were launched, or loaded, before: only the first time takes memory of the device.
//
// The table is asked at every launch. It is one word for each kernel, read without a lock and
// without thread-local memory. A kernel's handle has one slot where it is expected, and may lie
// anywhere in that slot's cache line. A handle that was pushed out of a full line counts as new
// again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::tracking {

class LaunchedKernels {
 public:
  // True if the kernel lies in its expected slot: a quick test, which may be false for a kernel in
  // the set.
  bool expected_slot_has(CUfunction kernel) const noexcept {
    const std::uint64_t word = word_of(kernel);
    return slots_[slot_of(word)].load(std::memory_order_relaxed) == word;
  }
  // True if the kernel is in the set.
  bool has(CUfunction) const noexcept;
  void add(CUfunction) noexcept;
  // Forgets all kernels. Handles end with their module or context, and are used again.
  void forget_all() noexcept;

 private:
  static constexpr unsigned bits = 12;
  static constexpr std::size_t line = 8;  // words
  // An empty slot is 0. Handles are stored inverted, so that none is taken for an empty slot, not
  // even a null handle.
  static std::uint64_t word_of(CUfunction kernel) noexcept {
    return ~reinterpret_cast<std::uint64_t>(kernel);
  }
  static std::size_t slot_of(std::uint64_t word) noexcept {
    return word * std::uint64_t{0x9e3779b97f4a7c15} >> (64 - bits);
  }

  alignas(64) std::array<std::atomic<std::uint64_t>, std::size_t{1} << bits> slots_{};
};

extern constinit LaunchedKernels launched_kernels __attribute__((visibility("hidden")));
// Kernels, also of libraries, that the program asked about: their code is on the device.
extern constinit LaunchedKernels loaded_kernels __attribute__((visibility("hidden")));

}  // namespace cuwarden::tracking
