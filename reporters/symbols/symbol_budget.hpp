// Limits of the time and memory for looking up functions and source lines. Debug information of
// hundreds of megabytes takes seconds to read, and as much memory, for which a process that is
// about to end does not wait. Past the limit for lines, functions are looked up in the symbol table
// alone, which is quick. Past the limit for names, nothing is looked up.
#pragma once

#include <chrono>
#include <cstddef>

namespace cuwarden {

// Longest time for looking up functions and lines in a process that ends, unless the setting
// CUWARDEN_SYMBOL_TIME gives another time.
inline constexpr std::chrono::milliseconds longest_symbol_time_at_exit{1600};
// Longest time for looking up functions and lines in the `cuwarden` command. No program is delayed
// there, but a user waits.
inline constexpr std::chrono::seconds longest_symbol_time_afterwards{30};
// Most bytes of memory that reading debug information may take in a process that ends, unless
// CUWARDEN_SYMBOL_TIME is above longest_symbol_time_at_exit.
inline constexpr std::size_t most_symbol_memory_at_exit = std::size_t{256} << 20;
// Most bytes of memory that reading debug information may take in the `cuwarden` command, or in a
// process that ends if CUWARDEN_SYMBOL_TIME is above longest_symbol_time_at_exit.
inline constexpr std::size_t most_symbol_memory_afterwards = std::size_t{4} << 30;

// The time and memory that looking up functions and source lines may take.
class SymbolBudget {
 public:
  using Clock = std::chrono::steady_clock;  // clock of the limits of time

  // Makes a budget without limits.
  SymbolBudget() = default;
  // Makes a budget of `time`, which begins now: source lines may take three quarters of it, lines
  // and function names together all of it. `most_memory`: most bytes for debug information.
  explicit SymbolBudget(std::chrono::nanoseconds time,
                        std::size_t most_memory = most_symbol_memory_at_exit)
      : most_memory_(most_memory) {
    renew(time);
  }
  // Begins the time anew, of a budget with limits: lines may take three quarters of `time` from
  // now, lines and function names together all of it. The memory that was taken stays taken.
  void renew(std::chrono::nanoseconds time) noexcept {
    lines_until_ = Clock::now() + time * 3 / 4;
    names_until_ = Clock::now() + time;
  }

  // True until the time for looking up source lines has passed; always true for a budget without
  // limits.
  bool has_time_for_lines() const noexcept { return is_before(lines_until_); }
  // True until the time for looking up function names has passed; always true for a budget without
  // limits.
  bool has_time_for_names() const noexcept { return is_before(names_until_); }

  // Counts `bytes` of memory for debug information as taken, for good. Returns false, and counts
  // nothing, if the budget has less memory left, or if filling the memory would take longer than
  // the time left for lines: decompressing, the slowest way to fill it, cannot be interrupted.
  // Always returns true for a budget without limits.
  bool take_memory(std::size_t bytes) noexcept;

 private:
  // True if `end` is still to come, or if it is time_point::max(), which stands for no limit.
  static bool is_before(Clock::time_point end) noexcept {
    return end == Clock::time_point::max() || Clock::now() < end;
  }

  // Moment until which source lines may be looked up; max(): no limit.
  Clock::time_point lines_until_ = Clock::time_point::max();
  // Moment until which function names may be looked up; max(): no limit.
  Clock::time_point names_until_ = Clock::time_point::max();
  // Bytes of memory taken so far; most bytes that may be taken (no limit if lines_until_ is max()).
  std::size_t taken_bytes_ = 0, most_memory_ = 0;
};

// Makes libbacktrace, which reads debug information, keep within a budget while this object exists.
// Once the budget is spent, libbacktrace gets no more memory and no further part of a file, and
// gives the file up. Concerns the present thread, which may have one such object at a time.
class BoundReading {
 public:
  // Counts the time and memory that libbacktrace takes in the calling thread against the budget,
  // and makes it stop once the budget is spent, until this object is destroyed. The budget must
  // outlive this object.
  explicit BoundReading(SymbolBudget&) noexcept;
  // Lets libbacktrace read without limits again in the calling thread.
  ~BoundReading();
  BoundReading(const BoundReading&) = delete;
  BoundReading& operator=(const BoundReading&) = delete;

  // True if libbacktrace stopped before it had read all debug information of a file: the budget of
  // time and memory was spent, or the system had no memory. Names and lines may then be missing.
  bool was_cut() const noexcept { return was_cut_; }
  // True if libbacktrace may map `bytes` more, by the budget of the calling thread's BoundReading;
  // always true in a thread without one. `is_memory`: true for anonymous memory, which then counts
  // as taken; false for a part of a file. If false is returned, was_cut() becomes true. Called in
  // the mmap() that libbacktrace uses.
  static bool allows(std::size_t bytes, bool is_memory) noexcept;
  // Makes was_cut() true for the calling thread's BoundReading, if there is one. Called if the
  // system refused memory to libbacktrace.
  static void was_refused() noexcept;

 private:
  SymbolBudget& budget_;  // budget that libbacktrace keeps within; not owned
  bool was_cut_ = false;  // true once libbacktrace got no memory or no further part of a file
};

}  // namespace cuwarden
