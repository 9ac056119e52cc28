// Loses blocks that the driver cuts from slabs. Some fill their slabs, and others leave room in
// them. The driver's records of a slab hold the address of the block that begins the slab. They are
// no pointers of the program.
//
// Prints how many blocks were lost, and how many of them begin a slab.
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {

constexpr std::size_t slab_bytes = std::size_t{2} << 20;

// Fills slabs and gives them back, so that the addresses of later slabs were freed before.
[[gnu::noinline]] bool fill_and_free() {
  std::array<void*, 24> blocks{};
  for (void*& block : blocks)
    if (cudaMalloc(&block, slab_bytes / 2) != cudaSuccess) return false;
  for (void*& block : blocks) {
    if (cudaFree(block) != cudaSuccess) return false;
    block = nullptr;
  }
  return true;
}

// Loses a block. Adds 1 to `in_front` if the block begins a slab.
[[gnu::noinline]] bool lose(std::size_t bytes, int& in_front) {
  void* block = nullptr;
  if (cudaMalloc(&block, bytes) != cudaSuccess) return false;
  if (reinterpret_cast<std::uintptr_t>(block) % slab_bytes == 0) ++in_front;
  block = nullptr;
  return true;
}

}  // namespace

int main() {
  int in_front = 0, lost = 0;
  if (!fill_and_free()) return 1;
  for (const std::size_t bytes : {slab_bytes / 4, slab_bytes * 3 / 10})
    for (int i = 0; i < 12; ++i, ++lost)
      if (!lose(bytes, in_front)) return 1;
  std::printf("{\"lost\":%d,\"in_front\":%d}\n", lost, in_front);
}
