// Takes the device's free memory, so that a later request finds none.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <thread>

#include "tests/end_to_end/programs/device_memory.hpp"

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
      while (cuwarden::test::free_bytes() >= block + leave &&
             cudaMalloc(&taken, block) == cudaSuccess)
        has_taken = true;
    }
    if (has_taken) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
}
