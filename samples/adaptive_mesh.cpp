// The bug: a mesh is refined where the solution is rough. Each patch of the fine mesh has a block
// of device memory, from 4 KiB to 1 MiB. When the solution is smooth again, nine of ten patches are
// merged and freed. Then the coarse mesh is to be stored in one block of three quarters of the
// freed bytes. But the driver cuts blocks of less than 2 MiB from slabs of 2 MiB, and a slab comes
// back only when its last block is freed. The remaining tenth of the patches is spread over all
// slabs, and keeps nearly all of them.
//
// Users see an out-of-memory right after they have freed gigabytes, and nvidia-smi agrees with the
// error: the memory has not come back.
//
//     adaptive_mesh [seed]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "samples/planned_shortage.hpp"

namespace {

struct Patch {
  void* values = nullptr;
  std::size_t bytes = 0;
};

sample::Account account;
std::vector<Patch> mesh;

[[gnu::noinline]] void refine(std::size_t bytes) {
  void* values = nullptr;
  sample::require(cudaMalloc(&values, bytes), "cudaMalloc");
  account.allocated(bytes);
  mesh.push_back({values, bytes});
}

[[gnu::noinline]] void merge_patch() {
  sample::require(cudaFree(mesh.back().values), "cudaFree");
  account.freed(mesh.back().bytes);
  mesh.pop_back();
}

[[gnu::noinline]] sample::Request store_coarse_mesh(std::size_t bytes) {
  void* values = nullptr;
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&values, bytes);
  sample::free_if_served(request, values, account);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(static_cast<unsigned>(sample::argument(argc, argv, 1, 20240607)));

  sample::hold_all_but(16 * sample::kGiB, account);
  // The finer the level, the more patches: each level has half as many as the level below it.
  std::geometric_distribution<unsigned> level(0.5);
  const std::size_t margin = 128 * sample::kMiB;
  for (std::size_t made = 0; made % 512 != 0 || sample::device_memory().free > margin; ++made) {
    refine(std::size_t{4096} << std::min(level(random), 8U));
  }
  const std::size_t refined = mesh.size();
  const std::size_t before = sample::device_memory().free;

  std::shuffle(mesh.begin(), mesh.end(), random);
  while (mesh.size() > refined / 10) merge_patch();
  const std::size_t after = sample::device_memory().free;
  const sample::Request request = store_coarse_mesh(account.freed_bytes / 4 * 3);

  std::printf("%zu patches, %zu of them left\n", refined, mesh.size());
  return sample::conclude(
      request, account,
      sample::fact("patches", refined) + sample::fact("given_back_bytes", after - before));
}
