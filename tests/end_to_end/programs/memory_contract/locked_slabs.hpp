// Locks much of a device in slabs. (The driver cuts small requests from slabs of 2 MiB, which go
// back to the device only when their last piece is freed.) Included by device code, too: C++17.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"

namespace cuwarden::memory_contract {

// Returns true if two requests of 3 MiB take more than 6 MiB of the device. Then the driver serves
// them, since it rounds such sizes up to 4 MiB; cuwarden's pool does not.
inline bool are_rounded_up() {
  constexpr std::size_t size = std::size_t{3} << 20;
  void* made[2] = {};
  const std::size_t before = test::free_bytes();
  for (void*& each : made) cudaMalloc(&each, size);
  const std::size_t taken = before - test::free_bytes();
  for (void* const each : made) cudaFree(each);
  return taken > 2 * size;
}

// Locks more than a fiftieth of the current device in the driver's slabs, for the life of the
// process: fills slabs with small allocations, and frees all but one in each. Then waits until
// requests of 3 MiB are no longer rounded up, since cuwarden's pool serves them. Returns false if
// an allocation fails, or if they are still rounded up 100 seconds later.
inline bool lock_slabs() {
  constexpr std::size_t small = std::size_t{64} << 10, in_slab = (std::size_t{2} << 20) / small;
  std::vector<void*> all(test::device_memory().total / 40 / small);
  for (void*& each : all)
    if (cudaMalloc(&each, small) != cudaSuccess) return false;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % in_slab != 0) cudaFree(all[i]);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (are_rounded_up()) {
    if (std::chrono::steady_clock::now() > end) {
      std::fprintf(stderr, "3 MiB are rounded up as ever\n");
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace cuwarden::memory_contract
