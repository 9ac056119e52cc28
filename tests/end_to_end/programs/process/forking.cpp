// forking COUNT OTHER-PROGRAM: three threads allocate and free while the main thread forks COUNT
// times. The children take turns: one ends at once; one becomes OTHER-PROGRAM by exec, with its
// number of allocations as argument; one tries CUDA, which does not survive a fork; one is made by
// vfork and becomes OTHER-PROGRAM. The program prints the parent's live allocations.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/programs/require.hpp"

namespace {

constexpr std::size_t bytes = 4096;
std::atomic<bool> stop{false};
std::atomic<unsigned long> allocations{0}, kept{0};

void allocate_and_free() {
  void* memory[8] = {};
  for (unsigned i = 0; !stop; ++i) {
    void*& slot = memory[i % 8];
    if (slot != nullptr) REQUIRE(cudaFree(slot));
    slot = nullptr;
    REQUIRE(cudaMalloc(&slot, bytes));
    ++allocations;
  }
  for (void* slot : memory) kept += slot != nullptr ? 1 : 0;
}

// Calls only functions that are allowed in the forked child of a program with threads.
[[noreturn]] void be_child(int turn, const char* other, const char* argument) {
  if (turn == 0) _exit(0);
  if (turn == 2) {
    void* memory = nullptr;
    _exit(cudaMalloc(&memory, bytes) == cudaSuccess ? 1 : 0);
  }
  const int silence = open("/dev/null", O_WRONLY);
  dup2(silence, STDOUT_FILENO);
  execl(other, other, argument, "512", nullptr);
  _exit(9);
}

// A function of its own: the child of vfork shares its caller's variables.
[[gnu::noinline]] pid_t start_child(int turn, const char* other, const char* argument) {
  const pid_t child = turn == 3 ? vfork() : fork();
  if (child != 0) return child;
  if (turn != 3) alarm(30);  // ends a child that waits for ever
  be_child(turn, other, argument);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 2 ? std::atoi(argv[1]) : 0;
  if (count == 0) return 2;
  void* first = nullptr;
  REQUIRE(cudaMalloc(&first, bytes));
  ++allocations, ++kept;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(allocate_and_free);
  int bad = 0;
  for (int i = 0; i < count; ++i) {
    const std::string argument = std::to_string(i + 1);
    const pid_t child = start_child(i % 4, argv[2], argument.c_str());
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++bad;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d children did not end well\n", bad);
  std::printf("{\"allocations\":%lu,\"live\":%lu}\n", allocations.load(), kept.load());
}
