// The bug: a staging buffer of pinned host memory for each shard of the input. Pinned memory cannot
// be swapped out, and counts against the container's memory limit. The kernel does not fail the
// request that exceeds the limit: it kills the process.
//
// People see `Killed` and no CUDA error. Where there is no limit, the program pins the whole input
// in one request, more than the machine has, which fails with an error. A limit above 8 GiB it
// leaves alone: that would take long, and others may live under the same one.
//
//     pinned_limit [bytes a buffer]
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "samples/planned_shortage.hpp"

namespace {

constexpr std::size_t kNoLimit = ~std::size_t{0};

sample::Account account;  // of pinned memory

// The host's memory and what can be swapped, in bytes.
std::size_t host_memory() {
  std::ifstream file("/proc/meminfo");
  std::size_t sum = 0;
  std::string name, unit;
  for (std::size_t kib = 0; file >> name >> kib; std::getline(file, unit)) {
    if (name == "MemTotal:" || name == "SwapTotal:") sum += kib * 1024;
  }
  return sum;
}

// The lowest limit on this process's memory cgroup, of either version, and on those above it.
std::size_t cgroup_limit() {
  std::size_t lowest = kNoLimit;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const std::string mount = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string limit = controllers.empty() ? "/memory.max" : "/memory.limit_in_bytes";
    std::string path = line.substr(second + 1);
    for (;;) {
      std::ifstream value(mount + path + limit);
      std::size_t bytes = 0;
      // Version 1 says "none" by a number that no machine has.
      if (value >> bytes && bytes < std::size_t{1} << 60) lowest = std::min(lowest, bytes);
      if (path.empty()) break;
      path.erase(path.rfind('/'));
    }
  }
  return lowest;
}

std::string limits() {
  const std::size_t limit = cgroup_limit();
  return sample::fact("host_bytes", host_memory()) + (limit == kNoLimit
                                                          ? sample::missing_fact("limit_bytes")
                                                          : sample::fact("limit_bytes", limit));
}

// The last line of the output is true whenever the kernel strikes: what is pinned, and what is
// asked for next.
void announce(const sample::Request& request) {
  std::printf("%s\n", sample::text_of(request, account, limits(), "null").c_str());
  std::fflush(stdout);
}

[[gnu::noinline]] sample::Request stage(std::size_t bytes) {
  void* buffer = nullptr;
  auto request = sample::Request::without_device("cudaMallocHost", bytes, __func__, __LINE__ + 2);
  announce(request);
  request.result = cudaMallocHost(&buffer, bytes);
  if (request.result == cudaSuccess) {
    account.allocated(bytes);
    std::memset(buffer, 1, bytes);
  }
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = sample::argument(argc, argv, 1, 4 * sample::kMiB);
  const std::size_t limit = cgroup_limit();
  if (limit != kNoLimit && limit > 8 * sample::kGiB) {
    std::fprintf(stderr, "the cgroup's limit of %zu bytes is too high to run into\n", limit);
    return 1;
  }
  sample::require(cudaFree(nullptr), "cudaFree");

  sample::Request request;
  if (limit == kNoLimit) {
    request = stage(host_memory() + sample::kGiB);
  } else {
    do request = stage(bytes);
    while (request.result == cudaSuccess && account.live_bytes <= limit);
  }
  return sample::conclude(request, account, limits(), "null");
}
