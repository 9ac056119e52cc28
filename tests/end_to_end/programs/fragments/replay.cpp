// replay TRACE: makes the calls of a recorded trace (tests/traces): first with all memory of the
// device, then again and again with less, to find the least memory with which no request is
// refused. Before such a try, all but so many bytes are allocated as one block. The last line says
// how much memory was in use by cudaMemGetInfo, in the mean and at most, how long a call took, and
// the least memory.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/traces/trace.hpp"

namespace {

using cuwarden::test::free_bytes;
using cuwarden::traces::Call;

constexpr std::size_t page = std::size_t{2} << 20;

struct Outcome {
  std::size_t most_used = 0;
  double mean_used = 0, ns_a_call = 0;
  bool is_refused = false;
};

// Makes the calls, and frees what is left at the end. Asks for the used memory after each request,
// if `asks` is true. Ends at the first request that is refused.
Outcome replay(const std::vector<Call>& calls, bool asks) {
  Outcome outcome;
  std::vector<void*> blocks;
  const std::size_t free_before = free_bytes();
  std::size_t asked = 0;
  std::chrono::nanoseconds taken{};
  for (std::size_t i = 0; i < calls.size() && !outcome.is_refused; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    if (calls[i].is_request) {
      void* made = nullptr;
      outcome.is_refused = cudaMalloc(&made, calls[i].bytes) != cudaSuccess;
      blocks.push_back(made);
    } else {
      REQUIRE(cudaFree(std::exchange(blocks[calls[i].request], nullptr)));
    }
    taken += std::chrono::steady_clock::now() - begun;
    if (!asks || !calls[i].is_request) continue;
    const std::size_t now = free_bytes(), used = free_before - std::min(free_before, now);
    outcome.most_used = std::max(outcome.most_used, used);
    outcome.mean_used +=
        (static_cast<double>(used) - outcome.mean_used) / static_cast<double>(++asked);
  }
  cudaGetLastError();
  for (void* const block : blocks) REQUIRE(cudaFree(block));
  outcome.ns_a_call = static_cast<double>(taken.count()) / static_cast<double>(calls.size());
  return outcome;
}

bool fits(const std::vector<Call>& calls, std::size_t room) {
  void* rest = nullptr;
  REQUIRE(cudaMalloc(&rest, (free_bytes() - room) / page * page));
  const bool has_fit = !replay(calls, false).is_refused;
  REQUIRE(cudaFree(rest));
  return has_fit;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const std::vector<Call> calls = cuwarden::traces::read(argv[1]);
  if (calls.empty()) {
    std::fprintf(stderr, "%s: not a trace\n", argv[1]);
    return 2;
  }
  REQUIRE(cudaFree(nullptr));
  if (argc == 3) {
    const bool has_fit = fits(calls, std::strtoull(argv[2], nullptr, 0));
    std::printf("{\"fits\": %s}\n", has_fit ? "true" : "false");
    return 0;
  }
  const Outcome outcome = replay(calls, true);
  if (outcome.is_refused) return 1;
  std::size_t too_little = 0, enough = 2 * outcome.most_used + 16 * page;
  while (enough - too_little > page) {
    const std::size_t room = (too_little + enough) / 2;
    (fits(calls, room) ? enough : too_little) = room;
  }
  std::printf(
      "{\"calls\": %zu, \"mean_used_bytes\": %.0f, \"most_used_bytes\": %zu, "
      "\"ns_a_call\": %.0f, \"least_room_bytes\": %zu}\n",
      calls.size(), outcome.mean_used, outcome.most_used, outcome.ns_a_call, enough);
  return 0;
}
