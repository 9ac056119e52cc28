// The states of a process's threads: which of them are the CUDA driver's own, and whether the
// program's have rested.
#pragma once

#include <cstdint>
#include <vector>

namespace cuwarden::reachability {

// The state of a thread of a process at one moment.
struct ThreadState {
  int id = 0;  // thread id in the kernel; 0: not set
  // Stack pointer of the thread; 0: unknown, since the thread was running.
  std::uint64_t stack_pointer = 0;
  // Arguments of the system call in which the thread waits; empty if it waits in none. The values
  // of other registers are not known.
  std::vector<std::uint64_t> arguments;
  // True if the thread's name is one that the CUDA driver gives to its threads.
  bool is_drivers = false;
  bool is_caller = false;    // true for the thread that makes the search
  std::uint64_t ran_ns = 0;  // time in ns that the thread has spent running so far; 0: unknown
};

// Returns the states of all threads of a process but the calling thread. `pid`: the process; 0:
// this one. `is_whole`: is set to true if the list of threads could be read, otherwise to false.
// Throws std::bad_alloc.
std::vector<ThreadState> thread_states(int pid, bool& is_whole);
// True if it is certain that no thread of the program ran between two moments. `before` and
// `after`: the threads of its process at these moments. The driver's threads, and the one that
// makes the search, do not count.
bool have_rested(const std::vector<ThreadState>& before, const std::vector<ThreadState>& after);

}  // namespace cuwarden::reachability
