// Reads the memory of a process without causing page faults. Only pages that are in memory are
// read, so that reading brings in no page and changes nothing in the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reporters/reachability/memory_areas.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// Reads the memory of one process, this one or another, as far as its pages are in memory.
class PresentMemory {
 public:
  // Opens the process's list of present pages (/proc/PID/pagemap). `pid`: the process; 0: this one.
  // `may_go_on`: is asked now and then; if it returns false, each_present() ends early. It must
  // outlive the object.
  PresentMemory(int pid, FunctionRef<bool()> may_go_on);
  // True if the list of present pages could be opened. Otherwise no memory can be read.
  explicit operator bool() const { return static_cast<bool>(pages_); }

  // Calls visit(run) for each run of pages of `range` that are in memory. A run is cut at the ends
  // of `range`. `only_own`: true leaves out pages that the process shares with a file or with other
  // processes. Pages in swap space are left out, and has_swapped_pages() is true afterwards. Pages
  // of zeros that were only read, never written, may be left out, too. Returns false if the list of
  // pages could not be read to the end, or if may_go_on() ended the call.
  bool each_present(Range range, bool only_own, FunctionRef<void(Range)> visit);
  // Reads words of memory from `start` on. Returns the number of words that were read into the
  // beginning of `words`; fewer than `words.size()` if memory ends there or was unmapped meanwhile,
  // or if the system refuses the reading (was_refused()). `start`: a multiple of 8.
  std::size_t read(std::uint64_t start, std::span<std::uint64_t> words) const;
  // Reads words of memory from `start` on, and returns their number; reads nothing and returns 0 if
  // one of their pages is not in memory. `start`: a multiple of 8.
  std::size_t read_present(std::uint64_t start, std::span<std::uint64_t> words);
  // True if each_present() has left out a page because it was in swap space.
  bool has_swapped_pages() const { return has_swapped_pages_; }
  // True if the system refused to read memory of the process, for another reason than that it is
  // not mapped.
  bool was_refused() const { return was_refused_; }

 private:
  // Does the work of each_present(), and returns its result, by a scan in the kernel (since Linux
  // 6.7). The scan passes over empty parts fast. If the kernel has no such scan, sets
  // `is_supported` to false, visits nothing, and returns false.
  bool scan_present(Range range, bool only_own, const FunctionRef<void(Range)>& visit,
                    bool& is_supported);
  // Does the work of each_present(), and returns its result, by reading the entry of each page of
  // `range` in /proc/PID/pagemap.
  bool list_present(Range range, bool only_own, const FunctionRef<void(Range)>& visit);

  // True if the process has memory in swap space, or if that is unknown. If the process has none,
  // pages that /proc/PID/pagemap marks as swapped are others, such as guard pages.
  bool uses_swap() const;

  const int pid_;  // pid of the process whose memory is read; never 0
  const FunctionRef<bool()> may_go_on_;
  const Descriptor pages_;              // /proc/PID/pagemap; empty if it could not be opened
  const Descriptor memory_;             // /proc/PID/mem; empty if it could not be opened
  std::vector<std::uint64_t> entries_;  // buffer of list_present(): entries of /proc/PID/pagemap
  bool scans_ = true;     // false once the kernel has turned out to lack the scan of scan_present()
  const bool uses_swap_;  // result of uses_swap() when the object was made
  bool has_swapped_pages_ = false;
  mutable bool was_refused_ = false;
};

}  // namespace cuwarden::reachability
