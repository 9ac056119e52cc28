// recovery LEAST MOST LIVE WINDOW REQUEST [name=value]...: how much of its freed memory a program
// can have again. Leaves WINDOW bytes of the device free, fills them with blocks of LEAST to MOST
// bytes, and frees all but LIVE percent of the blocks, by chance. Then it allocates REQUEST bytes
// until that fails; with requests=N, N times at most. seed=S: begin of the random numbers.
// watches=1: another thread fills a few bytes all the time, and notes how long that takes while the
// requests are made. The last line says how much was freed, how much of that cudaMemGetInfo showed
// as free, and how much could be had again. It also has the times of all this, and the number of
// surviving blocks that have lost their contents.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/fragments/stall_watch.hpp"
#include "tests/end_to_end/programs/require.hpp"

namespace {

using cuwarden::test::free_bytes;

using Clock = std::chrono::steady_clock;

struct Block {
  void* at = nullptr;
  std::size_t bytes = 0;
  std::uint64_t mark = 0;  // written to the block's first and last eight bytes
};

std::uint64_t nanoseconds(Clock::duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

char* last_word(const Block& block) {
  return static_cast<char*>(block.at) + block.bytes - sizeof block.mark;
}

void mark(const Block& block) {
  for (void* const word : {block.at, static_cast<void*>(last_word(block))})
    REQUIRE(cudaMemcpyAsync(word, &block.mark, sizeof block.mark, cudaMemcpyHostToDevice));
}

bool is_damaged(const Block& block) {
  for (const void* const word : {block.at, static_cast<void*>(last_word(block))}) {
    std::uint64_t found = 0;
    REQUIRE(cudaMemcpy(&found, word, sizeof found, cudaMemcpyDeviceToHost));
    if (found != block.mark) return true;
  }
  return false;
}

// Allocates `bytes` until that fails, but `limit` times at most; returns the number of blocks. Adds
// up the calls' times.
std::size_t allocate_until_refused(std::size_t bytes, std::size_t limit, Clock::duration& all,
                                   Clock::duration& most) {
  std::size_t count = 0;
  for (; count != limit; ++count) {
    void* block = nullptr;
    const auto before = Clock::now();
    const cudaError_t result = cudaMalloc(&block, bytes);
    const auto took = Clock::now() - before;
    all += took;
    most = std::max(most, took);
    if (result == cudaSuccess) continue;
    cudaGetLastError();
    break;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  const std::size_t least = std::strtoull(argv[1], nullptr, 0);
  const std::size_t most = std::strtoull(argv[2], nullptr, 0);
  const unsigned live_percent = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 0));
  const std::size_t window = std::strtoull(argv[4], nullptr, 0);
  const std::size_t request = std::strtoull(argv[5], nullptr, 0);
  std::map<std::string, std::size_t> options{
      {"seed", 4711}, {"requests", SIZE_MAX}, {"watches", 0}};
  for (int i = 6; i < argc; ++i) {
    const std::string text = argv[i];
    options[text.substr(0, text.find('='))] =
        std::strtoull(text.c_str() + text.find('=') + 1, nullptr, 0);
  }
  std::mt19937_64 random(options["seed"]);
  REQUIRE(cudaFree(nullptr));
  std::optional<cuwarden::test::StallWatch> watch;
  if (options["watches"] != 0) watch.emplace();

  constexpr std::size_t unit = std::size_t{2} << 20;
  if (const std::size_t free = free_bytes(); free > window + unit) {
    void* ballast = nullptr;
    REQUIRE(cudaMalloc(&ballast, (free - window) / unit * unit));
  }

  std::vector<Block> blocks;
  std::uniform_int_distribution<std::size_t> size(least, most);
  const std::size_t free_when_empty = free_bytes();
  const auto before_filling = Clock::now();
  Clock::duration filling{};
  for (std::uint64_t number = 1;; ++number) {
    Block block{nullptr, size(random), number};
    if (cudaMalloc(&block.at, block.bytes) != cudaSuccess) break;
    filling = Clock::now() - before_filling;
    blocks.push_back(block);
  }
  cudaGetLastError();
  for (const Block& block : blocks) mark(block);
  REQUIRE(cudaStreamSynchronize(nullptr));
  std::size_t filled = 0;
  for (const Block& block : blocks) filled += block.bytes;

  const std::size_t free_when_full = free_bytes();
  std::vector<Block> live;
  std::size_t freed = 0;
  for (const Block& block : blocks) {
    if (random() % 100 < live_percent) {
      live.push_back(block);
      continue;
    }
    REQUIRE(cudaFree(block.at));
    freed += block.bytes;
  }
  const std::size_t free_after = free_bytes();

  Clock::duration all{}, longest{};
  if (watch) watch->start();
  const std::size_t had = allocate_until_refused(request, options["requests"], all, longest);
  const auto seen = watch ? watch->stop() : cuwarden::test::StallWatch::Seen{};
  const auto damaged =
      static_cast<std::size_t>(std::count_if(live.begin(), live.end(), is_damaged));
  std::printf(
      "{\"window_bytes\": %zu, \"blocks\": %zu, \"filled_bytes\": %zu, \"fill_ns_a_block\": %llu, "
      "\"freed_bytes\": %zu, \"shown_free_bytes\": %zu, \"had_again_bytes\": %zu, "
      "\"had_again_ns\": %llu, \"longest_request_ns\": %llu, \"damaged\": %zu, "
      "\"fills\": %llu, \"longest_fill_ns\": %llu, \"stalls\": %llu, \"stalled_ns\": %llu}\n",
      free_when_empty, blocks.size(), filled,
      static_cast<unsigned long long>(blocks.empty() ? 0 : nanoseconds(filling) / blocks.size()),
      freed, free_after - free_when_full, had * request,
      static_cast<unsigned long long>(nanoseconds(all)),
      static_cast<unsigned long long>(nanoseconds(longest)), damaged,
      static_cast<unsigned long long>(seen.fills), static_cast<unsigned long long>(seen.longest_ns),
      static_cast<unsigned long long>(seen.stalls),
      static_cast<unsigned long long>(seen.stalled_ns));
  return damaged == 0 ? 0 : 1;
}
