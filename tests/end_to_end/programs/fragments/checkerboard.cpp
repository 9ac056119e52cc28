// checkerboard BYTES PATTERN BUDGET [THREADS [gone|killed]]: fills BUDGET bytes of the device with
// requests of BYTES, frees every other one (`half`), nine of ten by chance (`most`) or none
// (`none`), and ends; with `gone` it frees the others before it does, and with `killed` it is
// killed then. Its last line says what it freed by the pattern and what the device's reading gave
// back for it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

using cuwarden::test::used_bytes;

[[gnu::noinline]] void fill(std::vector<void*>& pieces, std::size_t bytes) {
  for (void*& piece : pieces) REQUIRE(cudaMalloc(&piece, bytes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 0);
  const char* const pattern = argv[2];
  const std::size_t budget = std::strtoull(argv[3], nullptr, 0);
  const std::size_t threads = argc > 4 ? std::strtoull(argv[4], nullptr, 0) : 1;
  REQUIRE(cudaFree(nullptr));
  const long long before = used_bytes();

  std::vector<std::vector<void*>> all(threads,
                                      std::vector<void*>(budget / bytes / threads, nullptr));
  std::vector<std::thread> workers;
  for (std::vector<void*>& pieces : all) workers.emplace_back([&] { fill(pieces, bytes); });
  for (std::thread& worker : workers) worker.join();
  const long long full = used_bytes();

  std::mt19937 random(4711);
  std::size_t freed = 0, live = 0;
  std::vector<void*> rest;
  for (const std::vector<void*>& pieces : all) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const bool goes = std::strcmp(pattern, "half") == 0   ? i % 2 == 0
                        : std::strcmp(pattern, "most") == 0 ? random() % 10 != 0
                                                            : false;
      if (goes)
        REQUIRE(cudaFree(pieces[i]));
      else
        rest.push_back(pieces[i]);
      ++(goes ? freed : live);
    }
  }
  std::printf(
      "{\"freed_bytes\": %zu, \"given_back_bytes\": %lld, \"live_count\": %zu, "
      "\"live_bytes\": %zu, \"held_when_full_bytes\": %lld, \"requested_when_full_bytes\": %zu}\n",
      freed * bytes, full - used_bytes(), live, live * bytes, full - before,
      (freed + live) * bytes);
  if (argc <= 5) return 0;
  std::sort(rest.begin(), rest.end());  // slab by slab
  for (void* const piece : rest) REQUIRE(cudaFree(piece));
  std::fflush(stdout);
  if (std::strcmp(argv[5], "killed") == 0) std::raise(SIGKILL);
}
