// The bug: a cache holds as many image tiles as fit by arithmetic: free memory divided by the bytes
// of a tile. The device gives out large blocks in pages of 2 MiB. So a tile of 3 MiB takes 4 MiB,
// and one of 1.5 MiB takes 2. A quarter of the device is lost, and the cache is full too early.
//
// Users see an out-of-memory at three quarters of the planned size, and their own sums are right.
//
//     odd_sizes
#include <cuda_runtime_api.h>

#include <cstdio>

#include "samples/planned_shortage.hpp"

namespace {

constexpr std::size_t kTile = 3 * sample::kMiB;
constexpr std::size_t kHalfTile = kTile / 2;  // A tile at the lower resolution.

sample::Account account;

[[gnu::noinline]] sample::Request cache_tile(std::size_t bytes) {
  void* tile = nullptr;
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&tile, bytes);
  if (request.result == cudaSuccess) account.allocated(bytes);
  return request;
}

}  // namespace

int main() {
  sample::hold_all_but(32 * sample::kGiB, account);
  const std::size_t other = account.live_bytes;
  const std::size_t room = sample::device_memory().free;
  // Tiles of both resolutions, as many as there are bytes for, less some pages.
  const std::size_t planned = 2 * ((room - 16 * sample::kMiB) / (kTile + kHalfTile));

  sample::Request request;
  std::size_t cached = 0;
  for (; cached < planned; ++cached) {
    request = cache_tile(cached % 2 == 0 ? kTile : kHalfTile);
    if (request.result != cudaSuccess) break;
  }
  std::printf("%zu tiles of %zu\n", cached, planned);
  const std::size_t held = account.live_bytes - other;
  return sample::conclude(request, account,
                          sample::fact("planned_tiles", planned) +
                              sample::fact("cached_tiles", cached) +
                              sample::fact("requested_bytes_held", held) +
                              sample::fact("device_lost_bytes", room - request.before.free));
}
