// Which kernels were launched, or loaded, before: what that takes from the device it takes the
// first time.
//
// Asked at every launch: the table is one word a kernel, read without a lock and without any word
// of the thread's. A kernel's handle has one place where it is expected, and may be anywhere in
// that cache line. One that was pushed out, by more than a line holds, counts as new again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::families {

class LaunchedKernels {
 public:
  // False in doubt.
  bool expected_place_has(CUfunction kernel) const noexcept {
    const std::uint64_t word = word_of(kernel);
    return places_[place_of(word)].load(std::memory_order_relaxed) == word;
  }
  bool has(CUfunction) const noexcept;
  void add(CUfunction) noexcept;
  // Handles end with their module or context, and come again.
  void forget_all() noexcept;

 private:
  static constexpr unsigned bits = 12;
  static constexpr std::size_t line = 8;  // words
  // A free place is 0, and no kernel must be taken for it: not even one that the program never got.
  static std::uint64_t word_of(CUfunction kernel) noexcept {
    return ~reinterpret_cast<std::uint64_t>(kernel);
  }
  static std::size_t place_of(std::uint64_t word) noexcept {
    return word * std::uint64_t{0x9e3779b97f4a7c15} >> (64 - bits);
  }

  alignas(64) std::array<std::atomic<std::uint64_t>, std::size_t{1} << bits> places_{};
};

extern constinit LaunchedKernels launched_kernels __attribute__((visibility("hidden")));
// Those, and libraries' kernels, that somebody asked about: their code is on the device.
extern constinit LaunchedKernels loaded_kernels __attribute__((visibility("hidden")));

}  // namespace cuwarden::families
