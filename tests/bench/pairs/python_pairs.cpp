// A library for Python: allocates and frees by the driver's functions, as deep in Python functions
// as its caller is.
#include <cstddef>
#include <cstdint>

#include "tests/thread_time.hpp"

extern "C" int cuInit(unsigned);
extern "C" int cuMemAlloc_v2(std::uint64_t*, std::size_t);
extern "C" int cuMemFree_v2(std::uint64_t);

// Makes pairs of an allocation and its free for `milliseconds` of CPU time. Returns the nanoseconds
// of CPU time that one took.
extern "C" double nanoseconds_of_a_pair(int milliseconds) {
  constexpr int block = 1000;
  cuInit(0);
  double pairs = 0;
  const std::int64_t begun_ns = cuwarden::computed_ns();
  std::int64_t taken_ns = 0;
  while (taken_ns < milliseconds * std::int64_t{1'000'000}) {
    for (int i = 0; i < block; ++i) {
      std::uint64_t address = 0;
      cuMemAlloc_v2(&address, 4096);
      cuMemFree_v2(address);
    }
    pairs += block;
    taken_ns = cuwarden::computed_ns() - begun_ns;
  }
  return static_cast<double>(taken_ns) / pairs;
}
