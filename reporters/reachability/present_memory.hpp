// Reads the memory of a process without a fault: only pages that are in memory are read, so that
// reading brings in no page and changes nothing in the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reporters/reachability/memory_areas.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// The memory of one process, this one or another.
class PresentMemory {
 public:
  // Opens the process's list of present pages (/proc/PID/pagemap). `pid`: 0 stands for this
  // process. `may_go_on`: false ends each_present() early; outlives the object.
  PresentMemory(int pid, FunctionRef<bool()> may_go_on);
  // True if it can be known which pages are in memory. Otherwise nothing can be read.
  explicit operator bool() const { return static_cast<bool>(pages_); }

  // Calls visit(run) for each run of pages of `range` that are in memory. A run is cut at the ends
  // of `range`. `only_own`: true leaves out pages that the process shares with a file or with other
  // processes. Pages in swap space are not visited, and has_swapped_pages() is true afterwards.
  // Returns false if the list of pages could not be read to the end.
  bool each_present(Range range, bool only_own, FunctionRef<void(Range)> visit);
  // Reads the memory from `start` on, and returns how many words were read, from the first: fewer
  // than `words.size()` if memory ends or was unmapped meanwhile. `start`: a multiple of 8.
  std::size_t read(std::uint64_t start, std::span<std::uint64_t> words) const;
  // As read(), but reads nothing if a page of the words is not in memory.
  std::size_t read_present(std::uint64_t start, std::span<std::uint64_t> words);
  // True if a page was in swap space, where it was not looked at.
  bool has_swapped_pages() const { return has_swapped_pages_; }
  // True if the system refused to read memory that is mapped.
  bool was_refused() const { return was_refused_; }

 private:
  // each_present() by a scan in the kernel, which passes over empty parts fast (since Linux 6.7).
  // Sets `is_supported` to false, and visits nothing, if the kernel has no such scan.
  bool scan_present(Range range, bool only_own, const FunctionRef<void(Range)>& visit,
                    bool& is_supported);
  // each_present() by the entries of all pages.
  bool list_present(Range range, bool only_own, const FunctionRef<void(Range)>& visit);

  // True if the process has memory in swap space. Pages may be marked like swapped ones for other
  // reasons, such as guard pages.
  bool uses_swap() const;

  const int pid_;  // the process's pid
  const FunctionRef<bool()> may_go_on_;
  const Descriptor pages_;              // /proc/PID/pagemap; empty if it could not be opened
  const Descriptor memory_;             // /proc/PID/mem; empty if it could not be opened
  std::vector<std::uint64_t> entries_;  // a part of the list of pages, an entry each
  bool scans_ = true;                   // false once the kernel has refused scan_present()
  const bool uses_swap_;                // result of uses_swap() at the beginning
  bool has_swapped_pages_ = false;
  mutable bool was_refused_ = false;
};

}  // namespace cuwarden::reachability
