// Kernels that were launched, or loaded, and executable graphs that were submitted before: only the
// first time takes memory of the device.
//
// A set is asked at every launch. It is one word for each handle, read without a lock and without
// thread-local memory. A handle has one slot where it is expected, and may lie anywhere in that
// slot's cache line. A handle that was pushed out of a full line counts as new again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::tracking {

// A set of handles of objects that were used before. Several threads may use the set at once,
// without a lock. If a part of the set is full, a new handle replaces another one, whose next use
// then counts as its first again.
class HandleSet {
 public:
  // Returns true if the handle lies in the slot where it is expected. Only this slot is read. If
  // false, the handle may lie in another slot of the same cache line, where has() looks, too.
  bool expected_slot_has(const void* handle) const noexcept {
    const std::uint64_t word = word_of(handle);
    return slots_[slot_of(word)].load(std::memory_order_relaxed) == word;
  }
  // True if the handle is in the set.
  bool has(const void*) const noexcept;
  // Adds the handle to the set. If the part of the set for this handle is full, another handle is
  // removed.
  void add(const void*) noexcept;
  // Removes the handle from the set, since the driver may give it to another object.
  void remove(const void*) noexcept;
  // Removes all handles from the set. To be called when a module or context ends, because new
  // kernels may get the handles of old ones. To be called, too, when launches of known kernels may
  // take device memory again.
  void forget_all() noexcept;

 private:
  // The set has 2 to the power of `bits` slots.
  static constexpr unsigned bits = 12;
  // Slots (words) in a cache line. A handle lies in any slot of one line.
  static constexpr std::size_t line = 8;
  // Returns the word that stands for the handle in its slot: the handle with all bits inverted. So
  // the word of a null handle is not 0, which stands for an empty slot.
  static std::uint64_t word_of(const void* handle) noexcept {
    return ~reinterpret_cast<std::uint64_t>(handle);
  }
  // Returns the index of the slot in which the handle with this word is expected.
  static std::size_t slot_of(std::uint64_t word) noexcept {
    return word * std::uint64_t{0x9e3779b97f4a7c15} >> (64 - bits);
  }

  alignas(64) std::array<std::atomic<std::uint64_t>, std::size_t{1} << bits> slots_{};
};

// The handles of kernels that the program has launched. Their code is on the device since then.
// Some may be missing, because the set is full or forget_all() was called.
extern constinit HandleSet launched_kernels __attribute__((visibility("hidden")));
// Kernels, also of libraries, whose attributes the program has asked for or set. Their code is on
// the device since then. Each element combines a device's ordinal and a kernel's handle, because
// each device loads a library's kernel separately.
extern constinit HandleSet loaded_kernels __attribute__((visibility("hidden")));
// Executable graphs that the program has launched or uploaded before. Only the first time takes
// device memory. Some may be missing, because the set is full or forget_all() was called.
extern constinit HandleSet submitted_graphs __attribute__((visibility("hidden")));

}  // namespace cuwarden::tracking
