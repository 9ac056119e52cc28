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

// A set of kernels whose code is on the device already: only a kernel's first launch takes device
// memory. Several threads may use the set at once, without a lock. If a part of the set is full, a
// new kernel replaces another one, whose next launch then counts as its first again.
class LaunchedKernels {
 public:
  // A quick test for a kernel in the set. True if the slot in which the kernel is looked for first
  // has it. If false, the kernel may still be in the set, as has() tells.
  bool expected_slot_has(CUfunction kernel) const noexcept {
    const std::uint64_t word = word_of(kernel);
    return slots_[slot_of(word)].load(std::memory_order_relaxed) == word;
  }
  // True if the kernel is in the set.
  bool has(CUfunction) const noexcept;
  // Adds the kernel to the set. If the part of the set for this kernel is full, another kernel is
  // removed.
  void add(CUfunction) noexcept;
  // Removes all kernels from the set. To be called when a module or context ends, because new
  // kernels may get the handles of old ones. Also called if launches of known kernels may take
  // device memory again.
  void forget_all() noexcept;

 private:
  // The set has 2 to the power of `bits` slots.
  static constexpr unsigned bits = 12;
  // Slots (words) in a cache line. A kernel lies in any slot of one line.
  static constexpr std::size_t line = 8;
  // Returns the word that stands for the kernel in its slot: its handle with all bits inverted. So
  // the word of a null handle is not 0, which stands for an empty slot.
  static std::uint64_t word_of(CUfunction kernel) noexcept {
    return ~reinterpret_cast<std::uint64_t>(kernel);
  }
  // Returns the index of the slot in which the kernel with this word is looked for first.
  static std::size_t slot_of(std::uint64_t word) noexcept {
    return word * std::uint64_t{0x9e3779b97f4a7c15} >> (64 - bits);
  }

  alignas(64) std::array<std::atomic<std::uint64_t>, std::size_t{1} << bits> slots_{};
};

// The handles of kernels that the program has launched. Their code is on the device since then.
// Some may be missing, because the set is full or forget_all() was called.
extern constinit LaunchedKernels launched_kernels __attribute__((visibility("hidden")));
// Kernels, also of libraries, whose attributes the program has asked for or set. Their code is on
// the device since then. Each element combines a device's ordinal and a kernel's handle, because
// each device loads a library's kernel separately.
extern constinit LaunchedKernels loaded_kernels __attribute__((visibility("hidden")));

}  // namespace cuwarden::tracking
