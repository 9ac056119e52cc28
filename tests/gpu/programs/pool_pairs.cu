// pool_pairs WAY STEPS: measures an allocation and its free. The last line is the median over the
// steps, in ns. WAY: small (4 KiB), tile (3 MiB), page (2 MiB), page_alone (2 MiB, while nothing
// else is allocated), pinned (4 KiB of host memory), pinned_mib (1 MiB), fill_quarter (256 KiB),
// fill_mib, fill_tile and fill_pinned (many held at a time: each step is one of them, and all are
// freed in the order of their allocation).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/gpu/programs/device_work.cuh"

namespace pairs {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

long long now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void print(const char* way, std::vector<long long>& taken) {
  std::nth_element(taken.begin(), taken.begin() + static_cast<long>(taken.size() / 2), taken.end());
  std::printf("{\"way\":\"%s\",\"median_ns\":%lld}\n", way, taken[taken.size() / 2]);
}

template <class Allocate, class Free>
void one_by_one(const char* way, int steps, Allocate allocate, Free free) {
  for (int i = 0; i < 100; ++i) free(allocate());
  std::vector<long long> taken;
  for (int i = 0; i < steps; ++i) {
    const long long begun = now_ns();
    free(allocate());
    taken.push_back(now_ns() - begun);
  }
  print(way, taken);
}

template <class Allocate, class Free>
void many(const char* way, int held, int rounds, Allocate allocate, Free free) {
  std::vector<long long> taken;
  for (int round = 0; round < rounds; ++round) {
    std::vector<void*> all;
    const long long begun = now_ns();
    for (int i = 0; i < held; ++i) all.push_back(allocate());
    for (void* const memory : all) free(memory);
    taken.push_back((now_ns() - begun) / held);
  }
  print(way, taken);
}

void* device(std::size_t bytes) {
  void* made = nullptr;
  REQUIRE(cudaMalloc(&made, bytes));
  return made;
}
void* host(std::size_t bytes) {
  void* made = nullptr;
  REQUIRE(cudaMallocHost(&made, bytes));
  return made;
}
void free_device(void* memory) { REQUIRE(cudaFree(memory)); }
void free_host(void* memory) { REQUIRE(cudaFreeHost(memory)); }

}  // namespace pairs

int main(int argc, char** argv) {
  using namespace pairs;
  if (argc != 3) return 2;
  const int steps = std::atoi(argv[2]);
  if (steps < 1) return 2;
  work::warm_up();
  if (std::strcmp(argv[1], "page_alone") != 0) device(4 * KiB);  // Keeps a slab open.
  const auto is = [&](const char* way) { return std::strcmp(argv[1], way) == 0; };
  if (is("small"))
    one_by_one(
        argv[1], steps, [] { return device(4 * KiB); }, free_device);
  if (is("tile"))
    one_by_one(
        argv[1], steps, [] { return device(3 * MiB); }, free_device);
  if (is("page") || is("page_alone"))
    one_by_one(
        argv[1], steps, [] { return device(2 * MiB); }, free_device);
  if (is("pinned"))
    one_by_one(
        argv[1], steps, [] { return host(4 * KiB); }, free_host);
  if (is("pinned_mib"))
    one_by_one(
        argv[1], steps, [] { return host(MiB); }, free_host);
  // There is only one round, which starts without any memory to reuse.
  if (is("fill_quarter"))
    many(
        argv[1], steps, 1, [] { return device(256 * KiB); }, free_device);
  if (is("fill_mib"))
    many(
        argv[1], steps, 1, [] { return device(MiB); }, free_device);
  if (is("fill_tile"))
    many(
        argv[1], steps, 1, [] { return device(3 * MiB); }, free_device);
  if (is("fill_pinned"))
    many(
        argv[1], steps, 1, [] { return host(64 * KiB); }, free_host);
  return 0;
}
