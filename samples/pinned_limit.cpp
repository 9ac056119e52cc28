// The bug: a staging buffer of pinned host memory for each shard of the input. Pinned memory cannot
// be swapped out, and counts against the container's memory limit. The kernel does not fail the
// request that exceeds the limit: it kills the process.
//
// Users see `Killed` and no CUDA error. If there is no limit, the program pins the whole input in
// one request that exceeds the machine's memory, and that fails with an error. The program does not
// try to reach a limit above 8 GiB: that would take long, and other processes may be under the same
// limit.
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

sample::Account account;  // Counts pinned memory.

// Returns the machine's memory and swap space in bytes.
std::size_t host_memory() {
  std::ifstream file("/proc/meminfo");
  std::size_t sum = 0;
  std::string name, unit;
  for (std::size_t kib = 0; file >> name >> kib; std::getline(file, unit)) {
    if (name == "MemTotal:" || name == "SwapTotal:") sum += kib * 1024;
  }
  return sum;
}

// Returns the lowest memory limit of this process's cgroup, of either version, and of the cgroups
// above it; kNoLimit if there is none.
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
      // Version 1 has a number for "no limit" that no machine reaches.
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

// Prints the memory that is pinned and the next request. So the last line of output is right
// whenever the kernel kills the process.
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
