// Moves pages into files in memory and back.
#include "tools/simulated_gpu/hardware/sharing.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <vector>

namespace cuwarden::simulated_gpu {
namespace {

constexpr std::size_t kHostPageBytes = 4096;

// Descriptors of shared pages, by first address; guarded by the simulator's lock, which every
// caller holds.
std::map<CUdeviceptr, int>& shared() {
  static auto* const made = new std::map<CUdeviceptr, int>;
  return *made;
}

}  // namespace

int share_pages(CUdeviceptr start, std::size_t size) {
  if (const auto found = shared().find(start); found != shared().end()) return found->second;
  const int descriptor = memfd_create("simulated-gpu-memory", MFD_CLOEXEC);
  if (descriptor < 0) return -1;
  void* const old = reinterpret_cast<void*>(start);
  void* copy = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(size)) == 0) {
    copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  }
  if (copy == MAP_FAILED) {
    close(descriptor);
    return -1;
  }
  // Only pages that were touched are copied: all others are zero on both sides.
  std::vector<unsigned char> resident(size / kHostPageBytes);
  if (mincore(old, size, resident.data()) != 0) resident.assign(resident.size(), 1);
  for (std::size_t page = 0; page < resident.size(); ++page) {
    if ((resident[page] & 1) == 0) continue;
    std::memcpy(static_cast<char*>(copy) + page * kHostPageBytes,
                reinterpret_cast<char*>(start) + page * kHostPageBytes, kHostPageBytes);
  }
  munmap(copy, size);
  if (mmap(old, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor,
           0) == MAP_FAILED) {
    close(descriptor);
    return -1;
  }
  shared()[start] = descriptor;
  return descriptor;
}

void unshare_pages(CUdeviceptr start, std::size_t size) {
  const auto found = shared().find(start);
  if (found == shared().end()) return;
  // Without memory for the kernel's own tables the pages stay shared.
  if (mmap(reinterpret_cast<void*>(start), size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    return;
  }
  close(found->second);
  shared().erase(found);
}

}  // namespace cuwarden::simulated_gpu
