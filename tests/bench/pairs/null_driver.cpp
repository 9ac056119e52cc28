// A driver that does nothing: what remains of a recorded call is the recording.
#include <cstddef>
#include <cstdint>

#define NULL_DRIVER extern "C" [[gnu::visibility("default")]] int

namespace {
thread_local std::uint64_t taken = 0;
thread_local std::uint64_t space = 0;
std::uint64_t next_space = 0;
}  // namespace

NULL_DRIVER cuInit(unsigned) { return 0; }
NULL_DRIVER cuDriverGetVersion(int* version) { return *version = 13000, 0; }
NULL_DRIVER cuCtxGetCurrent(void** context) {
  return *context = reinterpret_cast<void*>(std::uintptr_t{0x1000}), 0;
}
NULL_DRIVER cuCtxGetDevice(int* device) { return *device = 0, 0; }
NULL_DRIVER cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return *free = *total = std::size_t{1} << 40, 0;
}
// Every thread has addresses of its own, and takes them in turn.
NULL_DRIVER cuMemAlloc_v2(std::uint64_t* address, std::size_t) {
  if (space == 0) space = __atomic_add_fetch(&next_space, std::uint64_t{1} << 40, __ATOMIC_RELAXED);
  return *address = space + (taken++ % 4096 << 9), 0;
}
NULL_DRIVER cuMemFree_v2(std::uint64_t) { return 0; }
