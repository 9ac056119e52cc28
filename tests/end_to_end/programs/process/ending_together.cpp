// ending_together HOW THREADS [MICROSECONDS]: each thread allocates, and when all have, they end
// the process, each so many microseconds after the one before. HOW names the ways, joined by '+',
// which the threads take in turn. "return" is main's own, "handler" an exit() within an exit
// handler that another exit() has begun.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/comes_about.hpp"

namespace {

std::atomic<int> waiting{0};
int together = 0;
std::chrono::microseconds apart{0};

// All arrive before the first leaves, without a lock that would let them go one after the other. A
// pause between two looks would do so, too.
void meet(int thread) {
  ++waiting;
  cuwarden::wait_awake_until("all threads are there", [] { return waiting >= together; });
  std::this_thread::sleep_for(apart * thread);
}

template <int depth>
[[gnu::noinline]] void allocate_at() {
  void* memory = nullptr;
  if (cudaMalloc(&memory, 256) != cudaSuccess) std::abort();
  if constexpr (depth > 0) allocate_at<depth - 1>();
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void end(const std::string& way) {
  if (way == "exit") std::exit(1);
  if (way == "handler") {
    std::atexit([] { std::exit(1); });
    std::exit(1);
  }
  if (way == "quick_exit") std::quick_exit(1);
  if (way == "_exit") _exit(1);
  if (way == "abort") std::abort();
  if (way == "pthread_exit") pthread_exit(nullptr);
}

std::vector<std::string> ways_of(const std::string& text) {
  std::vector<std::string> ways;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    ways.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return ways;
}

}  // namespace

int main(int argc, char** argv) {
  // A program with frameworks has as many handlers. libc then keeps handlers in blocks, and the
  // thread that takes the last handler of a block frees the block.
  for (int i = 0; i < 100; ++i) std::atexit([] {});
  // Threads use it after main's stack is gone.
  static const auto& ways = *new std::vector<std::string>(ways_of(argc > 1 ? argv[1] : "exit"));
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  apart = std::chrono::microseconds(argc > 3 ? std::atoi(argv[3]) : 0);
  allocate_at<20>();  // so many stacks that naming them takes a while
  std::printf("{\"leaked\": 21}\n");
  std::fflush(stdout);
  together = threads;
  const bool main_too = ways[0] == "return" || ways[0] == "pthread_exit";
  for (int i = main_too ? 1 : 0; i < threads; ++i)
    std::thread([i] {
      meet(i);
      end(ways[static_cast<std::size_t>(i) % ways.size()]);
    }).detach();
  if (main_too) {
    meet(0);
    end(ways[0]);
    return 1;
  }
  for (;;) pause();
}
