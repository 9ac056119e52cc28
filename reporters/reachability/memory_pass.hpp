// One pass over the memory of a process, in search of words that point to blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reporters/reachability/block_index.hpp"
#include "reporters/reachability/hit.hpp"
#include "reporters/reachability/memory_areas.hpp"
#include "reporters/reachability/present_memory.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// The parts of a process's memory in which a program may keep pointers, as they are at one time.
struct Surroundings {
  std::vector<Area> areas;           // all areas of the process's memory, by address
  std::vector<ThreadState> threads;  // the threads but the calling one
  // Words that lie in no memory, such as the contents of registers.
  std::vector<std::uint64_t> registers;
  std::vector<Range> excluded;  // memory that is left out, by address
  std::vector<Range> managed;   // managed memory, by address
};

// The search for pointers to blocks, in all memory of a process that may hold any.
class MemoryPass {
 public:
  // All arguments outlive the object. `visit`: called for each hit. `may_go_on`: false ends the
  // pass early. Throws std::bad_alloc.
  MemoryPass(PresentMemory& memory, const Surroundings& surroundings, const BlockIndex& blocks,
             FunctionRef<void(const Hit&)> visit, FunctionRef<bool()> may_go_on);

  // Looks at all memory. Returns false if some memory was not looked at: there was no time, or
  // pages were in swap space.
  bool run();
  // Returns how many bytes of memory were looked at.
  std::uint64_t scanned_bytes() const { return scanned_bytes_; }

 private:
  // Looks at the part of an area that is in memory, without chunks.
  void scan_plain(Range range, HitLocation location, bool only_own);
  // Looks at a heap of glibc's malloc, chunk by chunk. `start`: address of its first chunk. Memory
  // behind a chunk that is damaged, or just being changed, is looked at without chunks.
  void scan_heap(Range heap, std::uint64_t start);
  // Looks at one chunk in use. `words`: the chunk's contents as far as they are in the window.
  void scan_chunk(std::uint64_t chunk, std::uint64_t bytes, std::span<const std::uint64_t> words);
  // Looks at words of memory.
  void scan_words(std::span<const std::uint64_t> words, HitLocation location);
  // Calls `visit_` for each block to which the word of the hit points.
  void give(Hit hit);
  // True if the chunk is in a list of free chunks, although it is marked as in use.
  bool is_in_free_list(std::uint64_t chunk, std::uint64_t bytes, std::uint64_t first_word) const;
  // Reads the heap's memory from `start` on into window_; pages that are not present read as zeros.
  // Returns the words that the window then holds.
  std::span<const std::uint64_t> fill_window(std::uint64_t start, std::uint64_t end);
  // Returns the heaps of glibc's malloc in an area that threads other than the first one use, each
  // with its first chunk. `area`: an anonymous area.
  struct Heap {
    Range range;
    std::uint64_t first_chunk = 0;
  };
  std::vector<Heap> thread_heaps(Range area) const;
  // True if eight headers of chunks in a row, from `start` on, are sound.
  bool begins_chunks(std::uint64_t start, std::uint64_t end) const;
  // Calls scan(part) for each part of the range that is not excluded.
  template <class Scan>
  void each_part(Range range, const Scan& scan) const;
  // Looks at one area of the process's memory.
  void scan_area(const Area& area);

  PresentMemory& memory_;
  const Surroundings& surroundings_;
  const BlockIndex& blocks_;
  const FunctionRef<void(const Hit&)> visit_;
  const FunctionRef<bool()> may_go_on_;
  std::vector<std::uint64_t> window_;  // copy of the memory that is looked at
  std::uint64_t scanned_bytes_ = 0;    // bytes that were looked at so far
  bool is_whole_ = true;               // false once some memory was not looked at
};

}  // namespace cuwarden::reachability
