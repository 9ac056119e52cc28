// A thread of the program that does a little work on the device all the time, and notes for how
// long that stands still.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/end_to_end/programs/require.hpp"

namespace cuwarden::test {

// Fills four bytes of the current device again and again, by a thread and a stream of its own, from
// start() until stop(). Each time it waits for the fill. Pauses of 200 us lie between the fills.
class StallWatch {
 public:
  // Durations of fills that were made so far, each with the wait for it, in nanoseconds.
  struct Seen {
    std::uint64_t fills = 0;       // number of fills
    std::uint64_t longest_ns = 0;  // the longest fill
    // Number of fills that took longer than a millisecond, and their time together.
    std::uint64_t stalls = 0, stalled_ns = 0;
  };

  // Makes the stream, and memory of 2 MiB, which the driver cuts from no slab. To be called before
  // the device is full. Ends the program if the device refuses.
  StallWatch() {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    REQUIRE(cudaMalloc(&memory_, std::size_t{2} << 20));
    fill();
  }
  ~StallWatch() {
    stop();
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Starts the thread. To be called once.
  void start() {
    thread_ = std::thread([this] {
      while (!ends_) {
        const auto begun = Clock::now();
        fill();
        note(Clock::now() - begun);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  // Ends the thread, if there is one, and returns what it has seen.
  Seen stop() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    return seen_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void fill() {
    REQUIRE(cudaMemsetAsync(memory_, 0, 4, stream_));
    REQUIRE(cudaStreamSynchronize(stream_));
  }
  void note(Clock::duration took) {
    const auto ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    ++seen_.fills;
    seen_.longest_ns = std::max(seen_.longest_ns, ns);
    if (ns <= 1'000'000) return;
    ++seen_.stalls;
    seen_.stalled_ns += ns;
  }

  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  Seen seen_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace cuwarden::test
