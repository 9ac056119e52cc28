// pair_loop WHAT DEPTH THREADS MILLISECONDS: allocates and frees, DEPTH calls below main, from each
// of THREADS threads. WHAT is `device` (the driver's functions) or `host` (malloc and free). Prints
// the nanoseconds that one pair takes a thread.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

extern "C" int cuInit(unsigned);
extern "C" int cuMemAlloc_v2(std::uint64_t*, std::size_t);
extern "C" int cuMemFree_v2(std::uint64_t);

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

using Pairs = void (*)(int);

[[gnu::noinline]] void below(int depth, Pairs pairs, int count) {
  if (depth > 0)
    below(depth - 1, pairs, count);
  else
    pairs(count);
  asm volatile("" ::: "memory");  // no tail call: each level is a frame
}

void run(int depth, Pairs pairs, Clock::duration limit, double* pair_ns) {
  constexpr int round = 1000;
  below(depth, pairs, round);  // what happens once
  std::int64_t done = 0;
  const auto start = Clock::now();
  while (Clock::now() - start < limit) {
    below(depth, pairs, round);
    done += round;
  }
  *pair_ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
             static_cast<double>(done);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const Pairs pairs = std::strcmp(argv[1], "host") == 0 ? host_pairs : device_pairs;
  const int depth = std::atoi(argv[2]);
  const auto limit = std::chrono::milliseconds(std::atoi(argv[4]));
  std::vector<double> pair_ns(static_cast<std::size_t>(std::atoi(argv[3])));
  cuInit(0);
  std::vector<std::thread> threads;
  for (double& each : pair_ns) threads.emplace_back(run, depth, pairs, limit, &each);
  double sum = 0;
  for (std::thread& thread : threads) thread.join();
  for (const double each : pair_ns) sum += each;
  std::printf("%.1f\n", sum / static_cast<double>(pair_ns.size()));
}
