// Goes once over the memory of a process, and finds words that point to blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reporters/reachability/block_index.hpp"
#include "reporters/reachability/hit.hpp"
#include "reporters/reachability/memory_areas.hpp"
#include "reporters/reachability/present_memory.hpp"
#include "reporters/reachability/thread_states.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// The parts of a process's memory in which a program may keep pointers, as they were at one moment.
struct Surroundings {
  std::vector<Area> areas;  // all areas of the process's memory, sorted by address
  // States of the threads; the calling one only if its stack is to be searched.
  std::vector<ThreadState> threads;
  std::vector<Range> excluded;  // memory that is not searched, sorted by address
  std::vector<Range> managed;   // managed memory (cudaMallocManaged), sorted by address
};

// One pass of a search for pointers to blocks. A pass looks at all memory of a process that may
// hold such pointers.
class MemoryPass {
 public:
  // Prepares a pass. All arguments must outlive the object. `visit`: is called for each word that
  // points to a block, and for each of the blocks if they overlap. `may_go_on`: is asked now and
  // then; if it returns false, the pass ends early. Throws std::bad_alloc.
  MemoryPass(PresentMemory& memory, const Surroundings& surroundings, const BlockIndex& blocks,
             FunctionRef<void(const Hit&)> visit, FunctionRef<bool()> may_go_on);

  // Looks at all memory. Returns false if some memory was not looked at: may_go_on() ended the
  // pass, or the list of present pages could not be read. Pages in swap space are left out, too;
  // PresentMemory::has_swapped_pages() says so.
  bool run();
  // Returns the number of bytes of memory that were looked at.
  std::uint64_t scanned_bytes() const { return scanned_bytes_; }

 private:
  // Looks at the present pages of a range of memory, word by word. `location`: kind of memory that
  // the hits get. `only_own`: true leaves out pages that the process shares with a file or with
  // other processes.
  void scan_plain(Range range, HitLocation location, bool only_own);
  // Looks at the chunks in use of a heap of glibc's malloc. `start`: address of the first chunk. A
  // chunk's header may be damaged, or be changed just then. If it is not sound, the rest of the
  // heap is looked at word by word.
  void scan_heap(Range heap, std::uint64_t start);
  // Looks at one chunk in use. `chunk`: its address. `bytes`: its size. `words`: its words, header
  // included, and the word behind it, which the chunk's user may write, too.
  void scan_chunk(std::uint64_t chunk, std::uint64_t bytes, std::span<const std::uint64_t> words);
  // Looks at words of memory. `location`: kind of memory that the hits get.
  void scan_words(std::span<const std::uint64_t> words, HitLocation location);
  // Calls visit_ for each block to which the word of the hit points. `hit`: a hit without its
  // block.
  void give(Hit hit);
  // True if the chunk is in one of malloc's lists of free chunks, although its header marks it as
  // in use. `chunk`: its address. `bytes`: its size. `first_word`: first word of its contents.
  bool is_in_free_list(std::uint64_t chunk, std::uint64_t bytes, std::uint64_t first_word) const;
  // Copies memory from `start` on, up to `end` at most, into window_. Pages that are not present
  // read as zeros. Returns the part of window_ that was filled.
  std::span<const std::uint64_t> fill_window(std::uint64_t start, std::uint64_t end);
  // A heap of glibc's malloc, and the address of its first chunk.
  struct Heap {
    Range range;
    std::uint64_t first_chunk = 0;
  };
  // Returns the heaps of glibc's malloc in an area, other than the main heap: those that other
  // threads use. A heap whose first chunk is not found is left out. The list is incomplete if
  // may_go_on() returns false. `area`: addresses of an anonymous area.
  std::vector<Heap> thread_heaps(Range area) const;
  // True if chunks of malloc begin at `start`: the headers of eight chunks in a row are sound, or
  // those of all chunks up to `end`.
  bool begins_chunks(std::uint64_t start, std::uint64_t end) const;
  // Calls scan(part) for each part of the range that is not in Surroundings::excluded.
  template <class Scan>
  void each_part(Range range, const Scan& scan) const;
  // Looks at one area of the process's memory, in the way that its use asks for.
  void scan_area(const Area& area);

  PresentMemory& memory_;
  const Surroundings& surroundings_;
  const BlockIndex& blocks_;
  const FunctionRef<void(const Hit&)> visit_;
  const FunctionRef<bool()> may_go_on_;
  std::vector<std::uint64_t> window_;  // copy of the memory that is looked at just now
  std::uint64_t scanned_bytes_ = 0;    // bytes of memory that this pass has looked at so far
  bool is_whole_ = true;               // false once some memory was not looked at
};

}  // namespace cuwarden::reachability
