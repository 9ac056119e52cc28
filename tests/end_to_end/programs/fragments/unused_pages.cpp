// unused_pages KEEP: fills the current device with blocks of 1 MiB and frees seven of eight, so
// that pages lie unused that were mapped in one piece with used ones. Frees KEEP MiB more, which
// the driver then has free. Lets two seconds pass, and frees one block more. The last line has the
// number of surviving blocks that have lost their contents.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::size_t keep = std::strtoull(argv[1], nullptr, 0) * MiB;
  void* kept = nullptr;
  if (keep != 0) REQUIRE(cudaMalloc(&kept, keep));
  // The driver needs some memory itself.
  std::vector<int*> blocks;
  while (cuwarden::test::free_bytes() > 24 * MiB) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&blocks.emplace_back()), MiB));
    const int number = static_cast<int>(blocks.size());
    REQUIRE(cudaMemcpy(blocks.back(), &number, sizeof number, cudaMemcpyHostToDevice));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (i % 8 != 3) REQUIRE(cudaFree(blocks[i]));
  if (keep != 0) REQUIRE(cudaFree(kept));
  let_time_pass(2000);
  REQUIRE(cudaFree(blocks[3]));
  int lost = 0;
  for (std::size_t i = 11; i < blocks.size(); i += 8) {
    int found = 0;
    REQUIRE(cudaMemcpy(&found, blocks[i], sizeof found, cudaMemcpyDeviceToHost));
    lost += found != static_cast<int>(i) + 1 ? 1 : 0;
  }
  std::printf("{\"blocks\": %zu, \"lost\": %d}\n", blocks.size(), lost);
  return 0;
}
