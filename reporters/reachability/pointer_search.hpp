// Searches a process's memory for pointers to its allocations. An allocation to which no pointer is
// left cannot be freed any more.
//
// Pointers that lie in device memory alone are not found, nor those that the program keeps in
// another form than an address. An old pointer in memory that is not in use any more may hide a
// loss. Free chunks of glibc's malloc are left out for this reason, those of other allocators are
// not.
#pragma once

#include <cstdint>
#include <vector>

#include "reporters/reachability/block_index.hpp"
#include "reporters/reachability/memory_areas.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/format/reach.hpp"

namespace cuwarden::reachability {

// The order for a search: the blocks to which pointers are searched for, and the memory that is
// searched.
struct PointerSearch {
  int pid = 0;  // process whose memory is searched; 0: this process
  // Addresses and handles of the allocations. Block::id is the index of the allocation in
  // FoundPointers::reach. Several blocks may belong to one allocation, such as a handle of virtual
  // memory and the addresses at which it is mapped.
  std::vector<Block> blocks;
  // Number of allocations; each Block::id in `blocks` is less than this.
  std::uint32_t allocations = 0;
  // Blocks that the driver alone knows, each with a Block::id of its own. From the words that point
  // to them, the search learns the form of the driver's records. An allocation whose Block::kind no
  // probe has is Reach::unknown if only words are found that may be the driver's.
  std::vector<Block> probes;
  // Function that returns memory that is not searched, sorted by address: the searching program's
  // own. It is called before each pass, because the search allocates memory itself. Null: all
  // memory is searched.
  std::vector<Range> (*excluded)() = nullptr;
  // Managed memory (cudaMallocManaged), sorted by address. The pages of it that are in host memory
  // are searched.
  std::vector<Range> managed;
  // Addresses of allocations in device memory. When the driver's records are compared, each area of
  // memory (line of /proc/PID/maps) with such an address counts as device memory. A word that
  // points into the area then counts as a number, not as a pointer. The field has an effect only on
  // a simulated GPU, whose device memory the process can read.
  std::vector<std::uint64_t> on_device;
  // If this process is searched: stack pointer of the calling thread in the program, since the
  // stack above it belongs to the program. 0: the process is another one.
  std::uint64_t stack_pointer = 0;
};

// The result of search_pointers(): which allocations of a process are reachable by pointers.
struct FoundPointers {
  // Result for each allocation; the index is the Block::id of its blocks in PointerSearch::blocks.
  // Reach::not_looked_for if the allocation has no block there.
  std::vector<Reach> reach;
  // The way in which the search ended. Unless it is `complete`, an allocation is Reach::unknown if
  // no pointer to its start was found.
  ReachSearch outcome = ReachSearch::not_made;
  std::uint64_t scanned_bytes = 0;  // bytes of memory that were looked at, summed over all passes
  int passes = 0;                   // number of passes over the memory
};

// Searches for pointers to the allocations, in one to three passes over the process's memory.
// `may_go_on`: is asked now and then; if it returns false, the search ends early. An allocation is
// lost only if a pass over all memory found no pointer to it. If other threads of the program ran
// meanwhile, a further pass must have found none, either. Throws std::bad_alloc.
FoundPointers search_pointers(const PointerSearch&, FunctionRef<bool()> may_go_on);

}  // namespace cuwarden::reachability
