// Threads that end the process at the same moment: one of them writes the last report, and the
// others wait for it, since the process must not end under its hands.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::shim {

class EndTurn {
 public:
  // How long naming functions may take in the last report. Before the first end.
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

  // In a forked child.
  void reset() noexcept;

 private:
  std::uint64_t longest_wait_ns() const noexcept;

  std::atomic<int> writer_{0};            // thread id; 0: none
  std::atomic<bool> writes_last_{false};  // the writer does
  std::atomic<std::uint32_t> over_{0};    // 1: the last report is written
  std::uint64_t symbol_time_ns_ = 0;
};

}  // namespace cuwarden::shim
