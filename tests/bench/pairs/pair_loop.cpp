// pair_loop WHAT DEPTH THREADS MILLISECONDS: allocates and frees, DEPTH calls below main, from each
// of THREADS threads. WHAT is `device` (the driver's functions), `host` (malloc and free), or
// `launches` (two launches, of kernels in turn, in place of a pair). Prints the nanoseconds of CPU
// time that one pair takes a thread, and then those in all.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

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

// As many kernels as a training step has.
[[gnu::noinline]] void launches(int count) {
  static char kernels[200][320];
  for (int i = 0; i < count; ++i) {
    for (int part = 0; part < 2; ++part)
      cuLaunchKernel(kernels[(2 * i + part) % 200], 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr,
                     nullptr);
  }
}

using Pairs = void (*)(int);

[[gnu::noinline]] void below(int depth, Pairs pairs, int count) {
  if (depth > 0)
    below(depth - 1, pairs, count);
  else
    pairs(count);
  asm volatile("" ::: "memory");  // no tail call: each level is a frame
}

struct PairTime {
  double cpu_ns = 0, wall_ns = 0;
};

double cpu_ns_of_this_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void run(int depth, Pairs pairs, Clock::duration limit, PairTime* pair) {
  constexpr int round = 1000;
  below(depth, pairs, round);  // what happens once
  std::int64_t done = 0;
  const double cpu_start = cpu_ns_of_this_thread();
  const auto start = Clock::now();
  while (Clock::now() - start < limit) {
    below(depth, pairs, round);
    done += round;
  }
  const std::chrono::duration<double, std::nano> wall = Clock::now() - start;
  *pair = {(cpu_ns_of_this_thread() - cpu_start) / static_cast<double>(done),
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
