// The device's free memory, and a function that takes it, so that a later request finds none.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <thread>

// Returns the bytes of the current device that are free, as the runtime says.
inline std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return free;
}

// Takes device memory, for good, until less than `leave` and 2 MiB more are free. Memory of a
// process that has ended comes back to the device a moment later, and is taken, too.
inline void fill_device(std::size_t leave) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  constexpr int most_rounds = 20;
  bool has_taken = true;
  for (int round = 0; has_taken && round < most_rounds; ++round) {
    has_taken = false;
    for (std::size_t block = 1024 * mib; block >= 2 * mib; block /= 2) {
      void* taken = nullptr;
      while (free_bytes() >= block + leave && cudaMalloc(&taken, block) == cudaSuccess)
        has_taken = true;
    }
    if (has_taken) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
}
