// The situation: a field of 1.4 times the device's memory, in tiles of which one or two are in use
// at a time. The rest could lie on the host, but cudaMalloc uses device memory only.
//
// Users see an out-of-memory at two thirds of the field, with nothing to free: all of it is needed.
//
// The size of the field is given in percent of the free memory. With `bytes of room`, the program
// first takes all memory but that room. The field is then smaller, and needs less of the host on a
// large device.
//
//     oversubscribe [percent] [bytes of room]
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "samples/planned_shortage.hpp"

namespace {

sample::Account account;

[[gnu::noinline]] sample::Request make_tile(std::size_t bytes) {
  void* tile = nullptr;
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&tile, bytes);
  if (request.result != cudaSuccess) return request;
  account.allocated(bytes);
  sample::require(cudaMemset(tile, 0, bytes), "cudaMemset");
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t percent = sample::argument(argc, argv, 1, 140);
  const std::size_t room = sample::argument(argc, argv, 2, 0);

  if (room != 0) sample::hold_all_but(room, account);
  const std::size_t other = account.live_bytes;
  const std::size_t free = sample::device_memory().free;
  const std::size_t bytes = free / 50 / sample::kDevicePage * sample::kDevicePage;
  if (bytes == 0) {
    std::fprintf(stderr, "%zu bytes are free: too few for 50 tiles\n", free);
    return 1;
  }
  const std::size_t planned = free / 100 * percent / bytes;

  sample::Request request;
  std::size_t made = 0;
  for (; made < planned; ++made) {
    request = make_tile(bytes);
    if (request.result != cudaSuccess) break;
    // Stands for computing the tile's first values.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::printf("%zu tiles of %zu\n", made, planned);
  return sample::conclude(request, account,
                          sample::fact("planned_tiles", planned) + sample::fact("tiles", made) +
                              sample::fact("bytes_a_tile", bytes) +
                              sample::fact("other_bytes", other));
}
