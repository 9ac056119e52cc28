// pair_loop WHAT DEPTH THREADS MILLISECONDS: allocates and frees, DEPTH calls below main, in each
// of THREADS threads. WHAT is `device` (the driver's functions), `host` (malloc and free), or
// `launches` (two launches of kernels in turn, in place of a pair). Prints the nanoseconds of CPU
// time that one pair takes a thread, and then those of wall time.
//
// `cold` measures the driver's functions in a program that does a lot in between, on paths that are
// new to the processor. Before each call, as much other memory is read as the core's own caches
// hold, and each pair has another one of 64 stacks. Prints the nanoseconds that the calls of a pair
// take, twice.
#include <alloca.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/thread_time.hpp"

extern "C" int cuInit(unsigned);
extern "C" int cuMemAlloc_v2(std::uint64_t*, std::size_t);
extern "C" int cuMemFree_v2(std::uint64_t);
extern "C" int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, void*, void**, void**);

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t bytes = 4096;

[[gnu::noinline]] void device_pairs(int count) {
  for (int i = 0; i < count; ++i) {
    std::uint64_t address = 0;
    cuMemAlloc_v2(&address, bytes);
    cuMemFree_v2(address);
  }
}

[[gnu::noinline]] void host_pairs(int count) {
  for (int i = 0; i < count; ++i) {
    void* volatile memory = std::malloc(bytes);
    std::free(memory);
  }
}

// Launches as many different kernels as a training step has.
[[gnu::noinline]] void launches(int count) {
  static char kernels[200][320];
  for (int i = 0; i < count; ++i) {
    for (int part = 0; part < 2; ++part)
      cuLaunchKernel(kernels[(2 * i + part) % 200], 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr,
                     nullptr);
  }
}

// More bytes than a core's own caches hold, and fewer than the cache that all cores share.
constexpr std::size_t other_bytes = std::size_t{4} << 20;
std::uint64_t read_other_memory() {
  static const std::vector<char> memory(other_bytes, 1);
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < other_bytes; at += 64)
    sum += static_cast<std::uint64_t>(memory[(at * 4097) % other_bytes]);
  return sum;
}

// A pair on one path. Bits of `way` choose one of two functions for each level, and the size of
// some frames. `ticks` gets the time of its calls in ticks of the time-stamp counter.
struct ColdPair {
  unsigned way;
  std::uint64_t ticks;
};
template <int which>
[[gnu::noinline]] void cold_level(int depth, ColdPair& pair) {
  const unsigned bits = pair.way >> depth % 28;
  if (depth % 8 == 0) static_cast<volatile char*>(alloca(bits % 16 * 16 + 16))[0] = 0;
  if (depth > 0) {
    bits % 2 != 0 ? cold_level<1>(depth - 1, pair) : cold_level<0>(depth - 1, pair);
  } else {
    std::uint64_t address = 0;
    const auto timed = [&](auto call) {
      if (read_other_memory() == 0) std::abort();
      _mm_lfence();
      const std::uint64_t start = __rdtsc();
      call();
      _mm_lfence();
      pair.ticks += __rdtsc() - start;
    };
    timed([&] { cuMemAlloc_v2(&address, bytes); });
    timed([&] { cuMemFree_v2(address); });
  }
  asm volatile("" ::: "memory");
}

// Returns the median time of a pair, in nanoseconds.
double cold_ns(int depth, Clock::duration limit) {
  std::vector<std::uint64_t> ticks;
  const auto start = Clock::now();
  const std::uint64_t first = __rdtsc();
  for (unsigned i = 0; Clock::now() - start < limit || i < 1000; ++i) {
    ColdPair pair{i % 64 * 0x9e3779b9, 0};
    cold_level<0>(depth, pair);
    if (i >= 500) ticks.push_back(pair.ticks);
  }
  const std::chrono::duration<double, std::nano> all = Clock::now() - start;
  const double tick_ns = all.count() / static_cast<double>(__rdtsc() - first);
  std::nth_element(ticks.begin(), ticks.begin() + ticks.size() / 2, ticks.end());
  return static_cast<double>(ticks[ticks.size() / 2]) * tick_ns;
}

using Pairs = void (*)(int);

[[gnu::noinline]] void below(int depth, Pairs pairs, int count) {
  if (depth > 0)
    below(depth - 1, pairs, count);
  else
    pairs(count);
  asm volatile("" ::: "memory");  // Prevents a tail call, so that each level is a frame.
}

struct PairTime {
  double cpu_ns = 0, wall_ns = 0;
};

void run(int depth, Pairs pairs, Clock::duration limit, PairTime* pair) {
  constexpr int round = 1000;
  below(depth, pairs, round);  // Does everything that happens only once.
  std::int64_t done = 0;
  const std::int64_t cpu_start_ns = cuwarden::computed_ns();
  const auto start = Clock::now();
  while (Clock::now() - start < limit) {
    below(depth, pairs, round);
    done += round;
  }
  const std::chrono::duration<double, std::nano> wall = Clock::now() - start;
  const std::int64_t cpu_ns = cuwarden::computed_ns() - cpu_start_ns;
  *pair = {static_cast<double>(cpu_ns) / static_cast<double>(done),
           wall.count() / static_cast<double>(done)};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const Pairs pairs = std::strcmp(argv[1], "host") == 0       ? host_pairs
                      : std::strcmp(argv[1], "launches") == 0 ? launches
                                                              : device_pairs;
  const int depth = std::atoi(argv[2]);
  const auto limit = std::chrono::milliseconds(std::atoi(argv[4]));
  std::vector<PairTime> times(static_cast<std::size_t>(std::atoi(argv[3])));
  cuInit(0);
  if (std::strcmp(argv[1], "cold") == 0) {
    const double ns = cold_ns(depth, limit);
    std::printf("%.1f\n%.1f\n", ns, ns);
    return 0;
  }
  std::vector<std::thread> threads;
  for (PairTime& each : times) threads.emplace_back(run, depth, pairs, limit, &each);
  for (std::thread& thread : threads) thread.join();
  PairTime sum;
  for (const PairTime& each : times) {
    sum.cpu_ns += each.cpu_ns;
    sum.wall_ns += each.wall_ns;
  }
  const auto count = static_cast<double>(times.size());
  std::printf("%.1f\n%.1f\n", sum.cpu_ns / count, sum.wall_ns / count);
}
