// Bounds of the time and memory for naming a report's frames. Debug information of hundreds of
// megabytes takes seconds to read, and as much memory. A process that is about to end is not held
// up so long: past the bound for lines, functions are named from the symbol table alone, which is
// quick, and past the bound for names not at all.
#pragma once

#include <chrono>
#include <cstddef>

namespace cuwarden {

// Longest time for names in a process that ends.
inline constexpr std::chrono::milliseconds longest_symbol_time_at_exit{1600};
// Longest time for names in the command, which delays no program but has a user who waits.
inline constexpr std::chrono::seconds longest_symbol_time_afterwards{30};
// Bytes of memory for debug information: in a process that ends, and in the command.
inline constexpr std::size_t most_symbol_memory_at_exit = std::size_t{256} << 20;
inline constexpr std::size_t most_symbol_memory_afterwards = std::size_t{4} << 30;

// Time and memory that the lookup of functions and lines may take.
class SymbolBudget {
 public:
  using Clock = std::chrono::steady_clock;

  SymbolBudget() = default;  // without bound
  // Begins now. Lines may take three quarters of `time`, lines and function names together all of
  // it. `most_memory`: bytes for debug information.
  explicit SymbolBudget(std::chrono::nanoseconds time,
                        std::size_t most_memory = most_symbol_memory_at_exit)
      : lines_until_(Clock::now() + time * 3 / 4),
        names_until_(Clock::now() + time),
        most_memory_(most_memory) {}

  bool has_time_for_lines() const noexcept { return is_before(lines_until_); }
  bool has_time_for_names() const noexcept { return is_before(names_until_); }

  // Takes `bytes` of the budget's memory; returns false, and takes none, if less is left. Filling
  // the memory, at worst by decompressing, cannot be interrupted.
  bool take_memory(std::size_t bytes) noexcept;

 private:
  static bool is_before(Clock::time_point end) noexcept {
    return end == Clock::time_point::max() || Clock::now() < end;
  }

  Clock::time_point lines_until_ = Clock::time_point::max();
  Clock::time_point names_until_ = Clock::time_point::max();
  std::size_t taken_bytes_ = 0, most_memory_ = 0;
};

// Makes libbacktrace read within a budget while the object exists. Once the budget is spent,
// libbacktrace gets no more memory and no further part of a file, and gives the file up. A thread
// has one such object at a time.
class BoundReading {
 public:
  explicit BoundReading(SymbolBudget&) noexcept;
  ~BoundReading();
  BoundReading(const BoundReading&) = delete;
  BoundReading& operator=(const BoundReading&) = delete;

  // True if a file was given up because the budget was spent.
  bool was_cut() const noexcept { return was_cut_; }
  // True if libbacktrace may map `bytes` more; called by its mmap. `is_memory`: true for memory,
  // false for a part of a file.
  static bool allows(std::size_t bytes, bool is_memory) noexcept;
  static void was_refused() noexcept;  // notes that the system refused a mapping

 private:
  SymbolBudget& budget_;
  bool was_cut_ = false;
};

}  // namespace cuwarden
