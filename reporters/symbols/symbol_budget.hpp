// Limits the time and memory for looking up functions and source lines. To read debug information
// of hundreds of megabytes takes seconds, and as much memory. A process that is about to end does
// not wait for that. Once the time for lines is over, functions are looked up in the symbol table
// alone, which is quick. Once the time for names is over, nothing is looked up.
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
// Most bytes of memory that reading debug information may take in a process that ends. Does not
// apply if CUWARDEN_SYMBOL_TIME is above longest_symbol_time_at_exit.
inline constexpr std::size_t most_symbol_memory_at_exit = std::size_t{256} << 20;
// Most bytes of memory that reading debug information may take in the `cuwarden` command. If
// CUWARDEN_SYMBOL_TIME is above longest_symbol_time_at_exit, this limit also holds for a process
// that is ending.
inline constexpr std::size_t most_symbol_memory_afterwards = std::size_t{4} << 30;

// Limits of the time and memory that looking up functions and source lines may take.
class SymbolBudget {
 public:
  using Clock = std::chrono::steady_clock;  // clock of the limits of time

  // Makes a budget without limits.
  SymbolBudget() = default;
  // Makes a budget of `time` from this moment on. Source lines may be looked up in the first three
  // quarters of it, function names in all of it. `most_memory`: most bytes of memory for debug
  // information.
  explicit SymbolBudget(std::chrono::nanoseconds time,
                        std::size_t most_memory = most_symbol_memory_at_exit)
      : most_memory_(most_memory) {
    renew(time);
  }
  // Makes the budget's time begin anew at this moment: lines may be looked up in the first three
  // quarters of `time`, function names in all of it. The memory that was taken stays taken. Only
  // for a budget with limits.
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
  // nothing, if the budget has less memory left. Also returns false if filling the memory would
  // take longer than the time left for lines. Decompression fills it, and cannot be interrupted. A
  // budget without limits always returns true.
  bool take_memory(std::size_t bytes) noexcept;

 private:
  // True if the present time is before `end`. Always true for time_point::max(), which means no
  // limit.
  static bool is_before(Clock::time_point end) noexcept {
    return end == Clock::time_point::max() || Clock::now() < end;
  }

  // Moment until which source lines may be looked up; max(): no limit.
  Clock::time_point lines_until_ = Clock::time_point::max();
  // Moment until which function names may be looked up; max(): no limit.
  Clock::time_point names_until_ = Clock::time_point::max();
  // taken_bytes_: bytes of memory that were taken so far. most_memory_: most bytes that may be
  // taken; no limit if lines_until_ is max().
  std::size_t taken_bytes_ = 0, most_memory_ = 0;
};

// Makes libbacktrace, which reads debug information, keep within a budget while this object exists.
// Once the budget is spent, libbacktrace gets no more memory and no further part of a file, and
// gives up the file that it reads. Only affects the thread that made the object. A thread may have
// one such object at a time.
class BoundReading {
 public:
  // Counts the time and memory that libbacktrace takes in the calling thread against the budget,
  // and makes it stop once the budget is spent. The budget must outlive this object.
  explicit BoundReading(SymbolBudget&) noexcept;
  // Lets libbacktrace read without limits again in the calling thread.
  ~BoundReading();
  BoundReading(const BoundReading&) = delete;
  BoundReading& operator=(const BoundReading&) = delete;

  // True if libbacktrace stopped before it had read all debug information of a file: the budget of
  // time and memory was spent, or the system had no memory. Names and lines may then be missing.
  bool was_cut() const noexcept { return was_cut_; }
  // True if libbacktrace may map `bytes` more by the budget of the calling thread's BoundReading;
  // always true in a thread without one. Called by the mmap() that libbacktrace uses. `is_memory`:
  // true for anonymous memory, which then counts as taken; false for a part of a file. If the
  // result is false, was_cut() becomes true.
  static bool allows(std::size_t bytes, bool is_memory) noexcept;
  // Makes was_cut() true for the calling thread's BoundReading, if there is one. Called if the
  // system refused memory to libbacktrace.
  static void was_refused() noexcept;

 private:
  SymbolBudget& budget_;  // budget that libbacktrace keeps within; not owned
  bool was_cut_ = false;  // true once libbacktrace was refused memory, or a further part of a file
};

}  // namespace cuwarden
