// A library for Python: allocates and frees by the driver's functions, as deep in Python functions
// as its caller is.
#include <cstddef>
#include <cstdint>
#include <ctime>

extern "C" int cuInit(unsigned);
extern "C" int cuMemAlloc_v2(std::uint64_t*, std::size_t);
extern "C" int cuMemFree_v2(std::uint64_t);

namespace {

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

// Makes pairs of an allocation and its free for `milliseconds` of CPU time. Returns the nanoseconds
// of CPU time that one took.
extern "C" double nanoseconds_of_a_pair(int milliseconds) {
  constexpr int block = 1000;
  cuInit(0);
  double pairs = 0;
  const double begun = cpu_ns();
  double now = begun;
  while (now - begun < milliseconds * 1e6) {
    for (int i = 0; i < block; ++i) {
      std::uint64_t address = 0;
      cuMemAlloc_v2(&address, 4096);
      cuMemFree_v2(address);
    }
    pairs += block;
    now = cpu_ns();
  }
  return (now - begun) / pairs;
}
