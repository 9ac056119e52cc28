// Maps 64 MiB and touches one page of it, and a large block of malloc of which it touches the ends.
// When the process ends, prints how many pages of both are in memory. The search for pointers must
// not bring in any.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t bytes = std::size_t{64} << 20, page = 4096;
unsigned char* mapped = nullptr;
unsigned char* allocated = nullptr;

std::size_t pages_in_memory(unsigned char* start) {
  std::vector<unsigned char> pages(bytes / page);
  if (mincore(start, bytes, pages.data()) != 0) std::abort();
  return static_cast<std::size_t>(
      std::ranges::count_if(pages, [](unsigned char flags) { return (flags & 1) != 0; }));
}

// Runs after the handlers that are registered later, those of CUDA and of libraries.
void print_pages() {
  std::printf("mapped: %zu, allocated: %zu\n", pages_in_memory(mapped), pages_in_memory(allocated));
}

}  // namespace

int main() {
  std::atexit(print_pages);
  mapped = static_cast<unsigned char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (mapped == MAP_FAILED) return 1;
  mapped[bytes / 2] = 1;
  void* block = nullptr;
  if (posix_memalign(&block, page, bytes) != 0) return 1;
  allocated = static_cast<unsigned char*>(block);
  allocated[0] = allocated[bytes - 1] = 1;
  void* lost = nullptr;
  if (cudaMalloc(&lost, 1 << 20) != cudaSuccess) return 1;
  lost = nullptr;
  return 0;
}
