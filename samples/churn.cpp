// The situation: a server keeps its answers in a cache of buffers of many sizes. All the time old
// buffers are freed and new ones made, and the cache never has more than its share of the device.
// Then a large request comes, and there should be room for it, because the cache keeps to its
// share. But some of that room is lost in slabs that small buffers keep half empty, and in the
// rounding of larger buffers.
//
// Users see an out-of-memory that comes after hours, depends on the order of requests, and does not
// come again after a restart.
//
//     churn [replacements]
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "samples/planned_shortage.hpp"

namespace {

struct Answer {
  void* buffer = nullptr;
  std::size_t bytes = 0;
};

sample::Account account;
std::vector<Answer> cache;

[[gnu::noinline]] void remember(std::size_t bytes) {
  void* buffer = nullptr;
  sample::require(cudaMalloc(&buffer, bytes), "cudaMalloc");
  account.allocated(bytes);
  cache.push_back({buffer, bytes});
}

[[gnu::noinline]] void forget(std::size_t which) {
  sample::require(cudaFree(cache[which].buffer), "cudaFree");
  account.freed(cache[which].bytes);
  cache[which] = cache.back();
  cache.pop_back();
}

[[gnu::noinline]] sample::Request large_answer(std::size_t bytes) {
  void* buffer = nullptr;
  auto request = sample::Request::planned("cudaMalloc", bytes, __func__, __LINE__ + 1);
  request.result = cudaMalloc(&buffer, bytes);
  sample::free_if_served(request, buffer, account);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t replacements = sample::argument(argc, argv, 1, 60000);

  sample::hold_all_but(16 * sample::kGiB, account);
  const std::size_t other = account.live_bytes;
  const std::size_t room = sample::device_memory().free;
  const std::size_t share = room / 10 * 6;

  std::mt19937 random(20240607);
  // Sizes from 4 KiB to 8 MiB, as many of each magnitude.
  std::uniform_real_distribution<double> magnitude(12, 23);
  const auto any_size = [&] { return static_cast<std::size_t>(std::exp2(magnitude(random))); };
  const auto make_room = [&](std::size_t bytes) {
    while (account.live_bytes - other + bytes > share) forget(random() % cache.size());
  };
  for (std::size_t made = 0; made < replacements || account.freed_count == 0; ++made) {
    const std::size_t bytes = any_size();
    make_room(bytes);
    remember(bytes);
  }

  const std::size_t held = account.live_bytes - other;
  const sample::Request request = large_answer((room - held) / 100 * 85);
  std::printf("%zu answers in the cache\n", cache.size());
  return sample::conclude(request, account,
                          sample::fact("requested_bytes_held", held) +
                              sample::fact("device_lost_bytes", room - request.before.free));
}
