// Memory that is moved behind its addresses while threads are at work on it:
//
//     meshed [name=value]...
//
// The device is filled but for `blocks` and `spare` MiB. `blocks` MiB are allocated and written, in
// blocks of 512 bytes to 1 MiB (least=L sizes=N: of N powers of two from 512 << L on). One of
// `keep` blocks stays. ask=PERCENT of the bytes of the others is then asked for in one request,
// while threads=N write and check the blocks that stayed. This is done rounds=N times. full=1: as
// many blocks are allocated as the device takes, and nothing is free when some are freed. handle=1:
// a dma-buf of a block is made. captures=1: another thread captures a stream all the time. makes=1:
// another thread makes, uses and destroys streams, events, modules and captured graphs all the
// time. seconds=S: the rounds go on for so long. reading_us=N: during the request, each reading of
// the shim's clock takes N us by that clock, if it is driven. The last line, as JSON, says how many
// requests were served, how many bytes were wrong, how often objects were made, and how many
// captures failed.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/comes_about.hpp"
#include "tests/end_to_end/programs/device_memory.hpp"
#include "tests/end_to_end/programs/let_time_pass.hpp"
#include "tests/end_to_end/programs/require.hpp"
#include "tests/end_to_end/programs/rescue/made_and_destroyed.hpp"

namespace meshed {

// A block of device memory that the program has allocated and filled with one value.
struct Block {
  void* memory = nullptr;   // device address of the block
  std::size_t bytes = 0;    // size of the block
  unsigned char value = 0;  // value of each byte of the block
};

// Captures the stream into one graph after the other until `ends` is true, but at least three
// times. Adds the number of captures to `captured`, and the number of those that failed to `lost`.
inline void capture(cudaStream_t stream, const std::atomic<bool>& ends, std::size_t& captured,
                    std::size_t& lost) {
  std::size_t to_come = 3;
  for (bool last = false; !last; ++captured) {
    last = ends && to_come <= 1;
    to_come -= std::min<std::size_t>(to_come, 1);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lost += cudaStreamEndCapture(stream, &graph) != cudaSuccess;
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

// Makes a dma-buf of the block's first page (4 KiB), as for a network card, and never closes it.
// Returns true on success.
inline bool make_handle(const Block& block) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
  int descriptor = -1;
  constexpr std::uint64_t page = 4096;
  const auto address = reinterpret_cast<CUdeviceptr>(block.memory) / page * page;
  return cudaGetDriverEntryPointByVersion("cuMemGetHandleForAddressRange", &found, 11070,
                                          cudaEnableDefault, &answer) == cudaSuccess &&
         answer == cudaDriverEntryPointSuccess &&
         reinterpret_cast<decltype(&cuMemGetHandleForAddressRange)>(found)(
             &descriptor, address, page, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) == CUDA_SUCCESS;
}

// Runs the program with the options of its command line, such as threads=3, and returns 0.
// `Worker`: class with the functions write(block), which fills a block with its value, and
// wrong_bytes(block), which counts other bytes in it. Both wait for the device. Each thread has a
// Worker of its own.
template <class Worker>
int run(int argc, char** argv) {
  std::map<std::string, std::size_t> options{{"blocks", 256}, {"spare", 48},  {"keep", 10},
                                             {"ask", 60},     {"threads", 3}, {"rounds", 2},
                                             {"least", 0},    {"sizes", 12}};
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    options[text.substr(0, text.find('='))] =
        std::strtoull(text.c_str() + text.find('=') + 1, nullptr, 0);
  }
  constexpr std::size_t mib = std::size_t{1} << 20;
  std::mt19937_64 random(7);
  std::size_t served = 0, worked = 0, wrong = 0, captured = 0, lost = 0, made = 0;
  std::vector<Block> blocks;
  // Streams take room, too: before there is none.
  Worker own;
  const std::size_t count = options["threads"];
  std::vector<std::unique_ptr<Worker>> workers(count);
  for (auto& worker : workers) worker = std::make_unique<Worker>();
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  // The memory that objects are used on. The first ones take memory that the driver keeps.
  unsigned *numbers = nullptr, stored = 0;
  if (options["makes"] != 0) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&numbers), 2 * sizeof *numbers));
    stored = runs_kernels(numbers) ? 7 : 0;
    wrong += make_and_destroy(numbers, 1, stored);
  }
  const std::size_t free = cuwarden::test::free_bytes();
  const std::size_t room = (options["blocks"] + options["spare"]) * mib;
  void* held = nullptr;
  REQUIRE(cudaMalloc(&held, (free - room) / (2 * mib) * 2 * mib));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options["seconds"]);
  std::size_t rounds = 0;
  for (; rounds < options["rounds"] || std::chrono::steady_clock::now() < end; ++rounds) {
    std::size_t sum = 0, given_up = 0;
    for (const Block& block : blocks) sum += block.bytes;
    while (options["full"] != 0 || sum < options["blocks"] * mib) {
      Block block{.bytes = std::size_t{512} << (options["least"] + random() % options["sizes"]),
                  .value = static_cast<unsigned char>(random())};
      if (cudaMalloc(&block.memory, block.bytes) != cudaSuccess) break;
      own.write(block);
      sum += block.bytes;
      blocks.push_back(block);
    }
    if (options["handle"] != 0) wrong += make_handle(blocks.front()) ? 0 : 1;
    std::shuffle(blocks.begin(), blocks.end(), random);
    while (blocks.size() > 100 && given_up * options["keep"] < sum * (options["keep"] - 1)) {
      REQUIRE(cudaFree(blocks.back().memory));
      given_up += blocks.back().bytes;
      blocks.pop_back();
    }
    std::atomic<bool> ends{false};
    std::atomic<std::size_t> wrong_there{0}, worked_there{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        Worker& worker = *workers[i];
        std::mt19937_64 which(i);
        // Each has blocks of its own.
        while (!ends) {
          Block& block = blocks[which() % (blocks.size() / count) * count + i];
          wrong_there += worker.wrong_bytes(block);
          block.value = static_cast<unsigned char>(which());
          worker.write(block);
          ++worked_there;
        }
      });
    if (options["captures"] != 0)
      threads.emplace_back([&] { capture(stream, ends, captured, lost); });
    if (numbers != nullptr)
      threads.emplace_back([&] {
        do {
          wrong_there += make_and_destroy(numbers, static_cast<unsigned>(++made), stored);
        } while (!ends);
      });
    cuwarden::wait_until("the threads have worked",
                         [&] { return count == 0 || worked_there >= 30; });
    void* large = nullptr;
    const std::size_t asked = given_up / 100 * options["ask"];
    if (options["reading_us"] != 0)
      let_readings_take(static_cast<std::int64_t>(options["reading_us"]) * 1000);
    const cudaError_t result = cudaMalloc(&large, asked);
    if (options["reading_us"] != 0) let_readings_take(1000);
    std::printf("round %zu: %s\n", rounds, cudaGetErrorName(result));
    served += result == cudaSuccess;
    cudaGetLastError();  // or the next who asks for it takes a refusal for its own error
    ends = true;
    for (std::thread& thread : threads) thread.join();
    if (large != nullptr) REQUIRE(cudaMemset(large, 0xee, asked));
    REQUIRE(cudaDeviceSynchronize());
    for (const Block& block : blocks) wrong += own.wrong_bytes(block);
    REQUIRE(cudaFree(large));
    wrong += wrong_there;
    worked += worked_there;
  }
  for (const Block& block : blocks) REQUIRE(cudaFree(block.memory));
  REQUIRE(cudaFree(held));
  REQUIRE(cudaFree(numbers));
  cudaStreamDestroy(stream);
  std::printf("{\"rounds\": %zu, \"served\": %zu, \"worked\": %zu, \"wrong\": %zu, ", rounds,
              served, worked, wrong);
  std::printf("\"made\": %zu, \"captures\": %zu, \"lost\": %zu}\n", made, captured, lost);
  return 0;
}

}  // namespace meshed
