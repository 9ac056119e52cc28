// allocation_loop malloc|async|slab|kernel_only STEPS: measures a step that allocates, works on the
// memory and frees it. The last line is the median over the steps, in ns.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/gpu/programs/device_work.cuh"

namespace memory {

constexpr std::size_t MiB = std::size_t{1} << 20;

template <typename Step>
void time_steps(const char* what, int steps, Step step) {
  for (int i = 0; i < steps / 10 + 10; ++i) step();
  REQUIRE(cudaDeviceSynchronize());
  std::vector<long long> taken(static_cast<std::size_t>(steps));
  for (long long& time : taken) {
    const auto start = std::chrono::steady_clock::now();
    step();
    time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                                start)
               .count();
  }
  std::nth_element(taken.begin(), taken.begin() + steps / 2, taken.end());
  std::printf("{\"what\":\"%s\",\"steps\":%d,\"median_ns\":%lld}\n", what, steps,
              taken[taken.size() / 2]);
}

void launch(void* data) {
  work::fill<<<4, 256>>>(static_cast<unsigned*>(data), 1024, 1);
  REQUIRE(cudaGetLastError());
}

}  // namespace memory

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int steps = std::atoi(argv[2]);
  if (steps < 1) return 2;
  work::warm_up();
  void* kept = nullptr;
  REQUIRE(cudaMalloc(&kept, 4096));  // Keeps a slab and its pool open.
  void* kept_in_pool = nullptr;
  REQUIRE(cudaMallocAsync(&kept_in_pool, 4096, nullptr));
  void* data = nullptr;
  if (std::strcmp(argv[1], "malloc") == 0) {
    memory::time_steps("cudaMalloc 4 MiB, kernel, cudaFree", steps, [&] {
      REQUIRE(cudaMalloc(&data, 4 * memory::MiB));
      memory::launch(data);
      REQUIRE(cudaFree(data));
    });
  } else if (std::strcmp(argv[1], "slab") == 0) {
    memory::time_steps("cudaMalloc 4 KiB, kernel, cudaFree", steps, [&] {
      REQUIRE(cudaMalloc(&data, 4096));
      memory::launch(data);
      REQUIRE(cudaFree(data));
    });
  } else if (std::strcmp(argv[1], "async") == 0) {
    memory::time_steps("cudaMallocAsync 4 KiB, kernel, cudaFreeAsync", steps, [&] {
      REQUIRE(cudaMallocAsync(&data, 4096, nullptr));
      memory::launch(data);
      REQUIRE(cudaFreeAsync(data, nullptr));
    });
  } else if (std::strcmp(argv[1], "kernel_only") == 0) {
    memory::time_steps("kernel, synchronise", steps, [&] {
      memory::launch(kept);
      REQUIRE(cudaDeviceSynchronize());
    });
  } else {
    return 2;
  }
}
