// Searches a process's memory for pointers to its allocations: an allocation to which no pointer is
// left cannot be freed any more.
//
// Pointers that lie in device memory alone are not found, nor those that the program keeps in
// another form than an address. An old pointer in memory that is not in use any more may hide a
// loss: chunks that glibc's malloc has free are left out, those of other allocators are not.
#pragma once

#include <cstdint>
#include <vector>

#include "reporters/reachability/block_index.hpp"
#include "reporters/reachability/memory_areas.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/format/reach.hpp"

namespace cuwarden::reachability {

// The blocks that are searched for, and the memory that is searched.
struct PointerSearch {
  int pid = 0;  // pid of the process; 0 stands for this process
  // Addresses of the allocations, and handles. `id` is the allocation's index in the result:
  // several blocks may belong to one, as a handle of virtual memory and the addresses where it is
  // mapped.
  std::vector<Block> blocks;
  std::uint32_t allocations = 0;  // number of indices: each block's id is less than this
  // Blocks that nothing but the driver knows, each with another `id`. From them, the search learns
  // the form of the driver's records.
  std::vector<Block> probes;
  // Returns memory that is left out, by address: the searching program's own. Called before each
  // pass, because the search allocates memory itself. Null: no memory is left out.
  std::vector<Range> (*excluded)() = nullptr;
  // Managed memory, by address. The parts of it that are in host memory are searched, too.
  std::vector<Range> managed;
  // Stack pointer of the calling thread, if the process is this one: its stack above belongs to the
  // program. 0: the process is another one.
  std::uint64_t stack_pointer = 0;
};

// The result of a search.
struct FoundPointers {
  std::vector<Reach> reach;                     // by index of the allocation
  ReachSearch outcome = ReachSearch::not_made;  // how the search ended
  std::uint64_t scanned_bytes = 0;              // memory that was looked at, in all passes
  int passes = 0;                               // number of passes over the memory
};

// Searches for the pointers, in two or three passes over the process's memory. `may_go_on`: false
// ends the search early. An allocation is lost only if no pointer to it was found in a pass over
// all memory, nor, if other threads run meanwhile, in another one. Throws std::bad_alloc.
FoundPointers search_pointers(const PointerSearch&, FunctionRef<bool()> may_go_on);

}  // namespace cuwarden::reachability
