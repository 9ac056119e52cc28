// Threads that end the process at the same moment: one of them writes the last report, and the
// others wait for it, since the process must not end under its hands.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::shim {

// The turns of threads that end the process. All functions may be called by any thread, and in
// signal handlers.
class EndTurn {
 public:
  // Sets the longest time that the last report may take to name functions. To be called before any
  // thread ends the process.
  void set_symbol_time(std::uint64_t ns) noexcept { symbol_time_ns_ = ns; }

  // Waits until no other thread writes a report. Returns true if the calling thread is to write it
  // now; then it must call give_back() afterwards. Returns false if the last report is written, if
  // another thread is stuck in writing, or if the calling thread is in a signal handler that
  // interrupted its own writing of the last report. `is_last`: true for the report after which none
  // is written.
  bool take(bool is_last) noexcept;
  // Ends the turn of the calling thread, and wakes threads that wait in take().
  void give_back(bool is_last) noexcept;

  // Waits until `done` is nonzero, or until the thread that should write the report is stuck or
  // gone. For a thread in exit() whose handler was taken by another thread.
  void wait_until(std::atomic<std::uint32_t>& done) noexcept;

  // True for the first thread that calls this function, in each of its calls; false for all others.
  bool is_first_in_quick_exit() noexcept;
  // To be called by each thread that calls exit(). Returns at once in the first one. The others
  // wait up to 50 ms, so that the first one can become the leader.
  void enter_exit() noexcept;
  // Makes the calling thread the leader, which brings the process to its end by exit(), unless
  // there is a leader.
  void leads_the_end() noexcept;
  // True if there is a leader, it is not the calling thread, and it still runs.
  bool another_leads_the_end() const noexcept;
  // Waits for the leader to end the process, and so usually does not return. Returns at once if
  // there is no leader or if the calling thread is the leader; later if the leader has ended as a
  // thread. If the leader is stuck in exit handlers that are not the shim's, the calling thread
  // becomes the leader: the one that is stuck may itself wait for the calling thread.
  void wait_for_leader() noexcept;

  // Forgets all turns; to be called in a forked child.
  void reset() noexcept;

 private:
  std::uint64_t longest_wait_ns() const noexcept;

  std::atomic<int> writer_{0};               // thread id; 0: none
  std::atomic<bool> writes_last_{false};     // the writer does
  std::atomic<std::uint32_t> over_{0};       // 1: the last report is written
  std::atomic<int> first_in_exit_{0};        // thread id; 0: none yet
  std::atomic<int> first_in_quick_exit_{0};  // thread id; 0: none yet
  std::atomic<int> leader_{0};               // thread id; 0: none yet
  std::uint64_t symbol_time_ns_ = 0;
};

}  // namespace cuwarden::shim
