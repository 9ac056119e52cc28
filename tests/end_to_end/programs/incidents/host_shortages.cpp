// Requests for the host's memory that fail:
//
//     pinned | registered | managed
//       bytes=N     how much is asked for; 0: more than the machine has
//       by=WAY      what stands against it: nothing (default), limit (RLIMIT_AS), gap (no gap
//       between
//                   mappings is so large), mappings (there are as many as the kernel allows)
//       api=driver, alloc=1 (cudaHostAlloc)
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/end_to_end/programs/incidents/shortages.hpp"

namespace shortages {
namespace {

std::size_t number_after(const char* path, const std::string& wanted) {
  std::ifstream file(path);
  std::string name, rest;
  for (std::size_t found = 0; file >> name; std::getline(file, rest))
    if (name == wanted && file >> found) return found;
  return 0;
}

void limit_addresses(std::size_t more) {
  const std::size_t mapped = number_after("/proc/self/status", "VmSize:") * 1024;
  const rlimit limit{mapped + more, RLIM_INFINITY};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::perror("setrlimit");
}

void* reserve(std::size_t bytes) {
  void* const start =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : start;
}

// Each has a page that is not like the others: the kernel cannot join it with the next one.
void leave_no_gap(std::size_t bytes) {
  for (std::size_t window = std::size_t{64} << 30; window >= bytes / 2; window /= 2)
    while (void* const start = reserve(window))
      if (mprotect(start, 4096, PROT_READ) != 0) break;
}

struct Pages {
  char* start = nullptr;
  std::size_t bytes = 0;
};

// Leaves room for a few.
Pages leave_few_mappings(std::size_t few) {
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::size_t most = 0, present = 0;
  if (!(file >> most)) return {};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++present;
  if (present + few + 2 >= most) return {};
  // Every other page may be read: each page is a mapping.
  const std::size_t pages = most - present - few;
  auto* const start = static_cast<char*>(reserve(pages * 4096));
  for (std::size_t i = 1; start != nullptr && i < pages; i += 2)
    if (mprotect(start + i * 4096, 4096, PROT_READ) != 0) break;
  return {start, pages * 4096};
}

[[gnu::noinline]] bool is_pinned(std::size_t bytes) {
  void* memory = nullptr;
  if (text("api", "runtime") == "driver") return cuMemHostAlloc(&memory, bytes, 0) == CUDA_SUCCESS;
  if (number("alloc", 0) != 0)
    return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable) == cudaSuccess;
  return cudaMallocHost(&memory, bytes) == cudaSuccess;
}

[[gnu::noinline]] bool is_registered(void* memory, std::size_t bytes) {
  if (text("api", "runtime") == "driver")
    return cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS;
  return cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess;
}

[[gnu::noinline]] bool is_managed(std::size_t bytes) {
  CUdeviceptr memory = 0;
  if (text("api", "runtime") == "driver")
    return cuMemAllocManaged(&memory, bytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS;
  void* managed = nullptr;
  return cudaMallocManaged(&managed, bytes) == cudaSuccess;
}

}  // namespace

void of_the_host(const std::string& situation) {
  if (situation != "pinned" && situation != "registered" && situation != "managed") return;
  const std::size_t ram = number_after("/proc/meminfo", "MemTotal:") * 1024;
  std::size_t bytes = number("bytes", 0);
  if (bytes == 0) bytes = (ram + number("more", 1024) * MiB) / page * page;
  facts.requested = bytes;
  // Memory that is to be registered gets its addresses before the address space is limited.
  void* const own = situation == "registered" ? reserve(bytes) : nullptr;
  if (own != nullptr) mprotect(own, bytes, PROT_READ | PROT_WRITE);
  const std::string by = text("by", "nothing");
  facts.figure = ram;
  if (by == "limit") {
    limit_addresses(bytes / 2);
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    facts.figure = limit.rlim_cur;
  }
  if (by == "gap") leave_no_gap(bytes);
  Pages pages;
  if (by == "mappings") pages = leave_few_mappings(number("few", 8));
  const bool served = situation == "pinned"       ? is_pinned(bytes)
                      : situation == "registered" ? is_registered(own, bytes)
                                                  : is_managed(bytes);
  ++(served ? facts.served : facts.failures);
  if (pages.start != nullptr) munmap(pages.start, pages.bytes);
}

}  // namespace shortages
