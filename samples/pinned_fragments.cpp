// The bug: a loader reserves address space for all the files that it may ever map, because
// addresses cost nothing. Then one large pinned buffer is asked for: there is plenty of memory, but
// no gap of addresses that large. With `limit`, the failure comes from RLIMIT_AS, the limit on
// address space that batch systems set. With `context`, RLIMIT_AS is so low that not even a context
// can be made.
//
// Users see cudaErrorMemoryAllocation for host memory, while `free` shows gigabytes.
//
//     pinned_fragments [mappings | limit | context]
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "samples/planned_shortage.hpp"

namespace {

constexpr std::size_t kEndOfUserSpace = (std::size_t{1} << 47) - 4096;

std::size_t status_bytes(const char* path, const std::string& wanted) {
  std::ifstream file(path);
  std::string name, rest;
  for (std::size_t kib = 0; file >> name; std::getline(file, rest)) {
    if (name == wanted && file >> kib) return kib * 1024;
  }
  return 0;
}

// The process's address space by /proc/self/maps: the kernel searches it in the same way for a new
// mapping.
struct AddressSpace {
  std::size_t mappings = 0;
  std::size_t largest_gap = 0;

  static AddressSpace now() {
    AddressSpace space;
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return space;
    char line[512];
    std::size_t start = 0, end = 0, previous = 0;
    while (std::fgets(line, sizeof line, maps) != nullptr) {
      if (std::sscanf(line, "%zx-%zx", &start, &end) != 2 || start > kEndOfUserSpace) continue;
      space.largest_gap = std::max(space.largest_gap, start - previous);
      previous = end;
      ++space.mappings;
    }
    std::fclose(maps);
    space.largest_gap = std::max(space.largest_gap, kEndOfUserSpace - previous);
    return space;
  }
};

// Reserves windows for files to come, from large to small, until no gap is left that would hold
// `bytes`. The first page of each window is readable, so that the kernel cannot join it with the
// next one.
[[gnu::noinline]] void reserve_windows(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t window = 64 * sample::kGiB; window >= bytes / 2; window /= 2) {
    for (;;) {
      void* const start =
          mmap(nullptr, window, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (start == MAP_FAILED || mprotect(start, kPage, PROT_READ) != 0) break;
    }
  }
}

void limit_addresses(std::size_t more) {
  const std::size_t mapped = status_bytes("/proc/self/status", "VmSize:");
  const rlimit limit{mapped + more, RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::perror("setrlimit");
}

std::size_t address_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  return limit.rlim_cur;
}

[[gnu::noinline]] sample::Request pin(std::size_t bytes) {
  void* buffer = nullptr;
  auto request = sample::Request::without_device("cudaMallocHost", bytes, __func__, __LINE__ + 1);
  request.result = cudaMallocHost(&buffer, bytes);
  if (request.result == cudaSuccess) sample::require(cudaFreeHost(buffer), "cudaFreeHost");
  return request;
}

[[gnu::noinline]] sample::Request make_context() {
  auto request = sample::Request::without_device("cudaFree", 0, __func__, __LINE__ + 1);
  request.result = cudaFree(nullptr);
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "mappings";
  if (mode != "mappings" && mode != "limit" && mode != "context") {
    std::fprintf(stderr, "pinned_fragments: mappings, limit or context, not %s\n", mode.c_str());
    return 1;
  }
  // The buffer takes at most a quarter of the machine, so memory is not lacking.
  const std::size_t memory = status_bytes("/proc/meminfo", "MemTotal:");
  const std::size_t bytes =
      std::min(memory / 4 / sample::kGiB * sample::kGiB + sample::kGiB, 8 * sample::kGiB);

  sample::Request request;
  if (mode == "context") {
    limit_addresses(256 * sample::kMiB);
    request = make_context();
  } else {
    sample::require(cudaFree(nullptr), "cudaFree");
    if (mode == "limit") limit_addresses(bytes / 2);
    if (mode == "mappings") reserve_windows(bytes);
    request = pin(bytes);
  }
  const AddressSpace space = AddressSpace::now();
  const std::size_t limit = address_limit();
  std::printf("the address space is cut up by %s\n", mode.c_str());
  return sample::conclude(
      request, sample::Account{},
      sample::fact("mode", mode.c_str()) + sample::fact("largest_gap_bytes", space.largest_gap) +
          sample::fact("mappings", space.mappings) +
          sample::fact("mapped_bytes", status_bytes("/proc/self/status", "VmSize:")) +
          sample::fact("host_bytes", memory) +
          (limit == RLIM_INFINITY ? sample::missing_fact("address_limit_bytes")
                                  : sample::fact("address_limit_bytes", limit)),
      "null");
}
