// ending_in_step THREADS: all threads call quick_exit() and run through it an instruction each in
// turn, as on a machine with a core for each thread.
#include <cuda_runtime_api.h>
#include <sched.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/comes_about.hpp"

namespace {

constexpr long long trap_flag = 0x100;  // the processor's: a SIGTRAP after each instruction
constexpr int steps = 3000;             // enough to reach the exit handlers
constexpr int chances = 40;
constexpr int most_threads = 64;

std::atomic<int> waiting{0};
std::atomic<int> done[most_threads];
thread_local int steps_done = 0, self = 0;

// Returns when each other thread has had its turn. One that has not after so many chances is
// blocked.
void give_way(int, siginfo_t*, void* context) {
  const int until = ++steps_done;
  for (int i = 0; i < chances; ++i) {
    bool behind = false;
    for (int t = 0; t < waiting.load(); ++t) behind |= done[t].load() < until && t != self;
    done[self].store(until);
    if (!behind) break;
    sched_yield();
  }
  if (until == steps) static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
}

void run_on_one_core() {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) {
      CPU_SET(i, &one);
      break;
    }
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = std::min(argc > 1 ? std::atoi(argv[1]) : 2, most_threads);
  void* memory = nullptr;
  if (cudaMalloc(&memory, 256) != cudaSuccess) return 2;
  std::printf("{\"leaked\": 1}\n");
  std::fflush(stdout);
  run_on_one_core();
  struct sigaction stepping {};
  stepping.sa_sigaction = give_way;
  stepping.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGTRAP, &stepping, nullptr);
  for (int i = 0; i < threads; ++i)
    std::thread([threads, i] {
      self = i;
      ++waiting;
      cuwarden::wait_until("all threads have begun", [=] { return waiting.load() == threads; });
      asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory");
      std::quick_exit(1);
    }).detach();
  for (;;) pause();
}
