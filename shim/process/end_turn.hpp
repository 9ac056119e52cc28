// Threads that end the process at the same moment: one of them writes the last report, and the
// others wait for it, since the process must not end under its hands.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::shim {

class EndTurn {
 public:
  // Sets the longest time that the last report may take to name functions. To be called before any
  // thread ends the process.
  void set_symbol_time(std::uint64_t ns) noexcept { symbol_time_ns_ = ns; }

  // True if the calling thread is to write the report; it calls give_back() afterwards. False once
  // another thread has written the last one, or is stuck in it, or where the calling thread is
  // itself interrupted in writing that. An earlier one that it was interrupted in is left.
  bool take(bool is_last) noexcept;
  // `is_last`: no report is written after this one.
  void give_back(bool is_last) noexcept;

  // For a thread that finds the handler that writes already given to another thread: returns once
  // `done` is nonzero, or when that thread does not come.
  void wait_until(std::atomic<std::uint32_t>& done) noexcept;

  // True for the first thread that calls it, and for that thread ever after.
  bool is_first_in_quick_exit() noexcept;
  // For a thread that calls exit(): returns at once in the first one. The others wait for a moment,
  // in which the first one comes to lead unless handlers of the program keep it.
  void enter_exit() noexcept;
  // The calling thread is the one that brings the process to its end by exit().
  void leads_the_end() noexcept;
  bool another_leads_the_end() const noexcept;
  // For every other thread that ends the process: the leader ends it meanwhile, so that this does
  // not return. It returns at once where no thread leads or the calling thread does, and otherwise
  // when the leader has ended as a thread, or when it is stuck in handlers that are not the shim's.
  void wait_for_leader() noexcept;

  // In a forked child.
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
