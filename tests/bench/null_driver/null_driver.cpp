// A driver that does nothing: all time that a recorded call takes over it is the recording's.
#include <x86intrin.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#define NULL_DRIVER extern "C" [[gnu::visibility("default")]] int

namespace {
thread_local std::uint64_t taken = 0;
thread_local std::uint64_t space = 0;
thread_local bool one_slab = false;
std::uint64_t next_space = 0;

// Ticks of the processor's time-stamp counter that each allocation and free takes
// (NULL_DRIVER_TICKS).
const std::uint64_t ticks = [] {
  const char* const text = std::getenv("NULL_DRIVER_TICKS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
}();
void work() {
  if (ticks == 0) return;
  for (const std::uint64_t start = __rdtsc(); __rdtsc() - start < ticks;) {
  }
}
}  // namespace

NULL_DRIVER cuInit(unsigned) { return 0; }
NULL_DRIVER cuDriverGetVersion(int* version) { return *version = 13000, 0; }
NULL_DRIVER cuCtxGetCurrent(void** context) {
  return *context = reinterpret_cast<void*>(std::uintptr_t{0x1000}), 0;
}
NULL_DRIVER cuDeviceGetCount(int* count) { return *count = 1, 0; }
NULL_DRIVER cuCtxGetDevice(int* device) { return *device = 0, 0; }
NULL_DRIVER cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return *free = *total = std::size_t{1} << 40, 0;
}
// Each thread has addresses of its own, and takes them in turn. They are in 2 MiB of the thread's
// or, if NULL_DRIVER_ONE_SLAB is set, they are every 64th piece of 2 MiB that all threads share.
NULL_DRIVER cuMemAlloc_v2(std::uint64_t* address, std::size_t) {
  work();
  if (space == 0) {
    const std::uint64_t number = __atomic_add_fetch(&next_space, 1, __ATOMIC_RELAXED);
    one_slab = std::getenv("NULL_DRIVER_ONE_SLAB") != nullptr;
    space = one_slab ? (std::uint64_t{1} << 40) + (number % 64 << 9) : number << 40;
  }
  return *address = space + (one_slab ? taken++ % 64 << 15 : taken++ % 4096 << 9), 0;
}
NULL_DRIVER cuMemFree_v2(std::uint64_t) {
  work();
  return 0;
}
NULL_DRIVER cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, void*, void**, void**) {
  return 0;
}
