// Decides the addresses of blocks in given regions, in steps of 512 bytes.
//
// A block takes a part of a hole. Parts in partly used pages are preferred. Of the first eight
// holes, in the order of addresses, that have a large enough part, the smallest part is taken. Of
// the rules that were tried, this one left the fewest pages in use, for recorded requests of real
// programs (tests/traces) and random ones together. The smallest of all holes left more, and so did
// the first one. Holes beside blocks of the same call site left more, too, and so did a region of
// its own for blocks that are likely to be freed early.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime_hooks/pool/packing/free_tree.hpp"
#include "runtime_hooks/pool/packing/stretch_nodes.hpp"

namespace cuwarden::pool {

// A block: a stretch of addresses that was handed out for one request.
struct Block {
  std::uint64_t start = 0;        // the address at which the block begins
  std::uint64_t bytes = 0;        // bytes that the program asked for
  std::uint64_t taken_bytes = 0;  // `bytes`, rounded up to a multiple of 512
  // A number that no other block of the process ever has; 0: the object describes no block.
  std::uint64_t serial = 0;
  bool sync_memops = false;  // true if the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
};

// The addresses that a block may take.
enum class Placement : std::uint8_t {
  // Addresses of a hole; holes in partly used pages (of 2 MiB) come first. If no hole is large
  // enough, bare pages, which have no memory. A block in bare pages begins in the hole right before
  // them, if there is one.
  anywhere,
  // Like `anywhere`, but a block of at most half a page (1 MiB) does not cross a page's end.
  within_page,
  // Like `anywhere`, but never in bare pages.
  in_memory,
};

// Returns `within_page`, which wastes addresses at pages' ends, while little is wasted: the pages
// that hold blocks have few free bytes. That is at most a fiftieth of these pages' size, plus one
// page. Returns `anywhere` otherwise. `used_bytes`: size of the pages that hold blocks.
// `taken_bytes`: bytes that the blocks take (Packing::taken_bytes()).
Placement placement_of_next_block(std::uint64_t used_bytes, std::uint64_t taken_bytes) noexcept;

// Decides at which addresses blocks (one for each request) lie in given regions, without touching
// the memory there. A block is live until the program frees it, retired until the device is done
// with it, and then a hole. Free pages (2 MiB) may be bare: without memory.
//
// Not safe for several threads at once.
class Packing {
 public:
  // Bytes of a step: address and size of each block are multiples of it.
  static constexpr std::uint64_t step_bytes = pool::step_bytes;

  // Adds `bytes` of free addresses with memory from `start` on, in which blocks may then lie. Both
  // numbers are multiples of 512 (step_bytes). Regions must not overlap. May throw std::bad_alloc,
  // and has changed nothing then.
  void add_region(std::uint64_t start, std::uint64_t bytes) { add(start, bytes, State::hole); }
  // Adds `bytes` of free addresses without memory from `start` on, which are bare pages. Both
  // numbers are multiples of a page (2 MiB). Regions must not overlap. May throw std::bad_alloc,
  // and has changed nothing then.
  void add_bare_pages(std::uint64_t start, std::uint64_t bytes) { add(start, bytes, State::bare); }
  // Removes the region that begins at the address `start`: addresses that one call of add_region()
  // or add_bare_pages() added. Returns false, with nothing removed, if no region begins there, or
  // if the region is not one hole or one bare stretch: a block or withheld addresses lie in it, or
  // only some of its pages are bare.
  bool remove_region(std::uint64_t start) noexcept;

  // Returns a new block (addresses for one request) of `bytes`; none if `bytes` is 0 or nothing is
  // large enough. The pages in which the block lies are not bare any more: the caller maps memory
  // at them, or calls give() and then lose_memory(). May throw std::bad_alloc, and has changed
  // nothing then.
  std::optional<Block> take(std::uint64_t bytes, Placement);
  // Marks the block that begins at the address `start` as freed by the program, and returns it. Its
  // addresses are not used again before give(). Returns none if no live block begins there.
  std::optional<Block> retire(std::uint64_t start) noexcept;
  // Makes the block that begins at the address `start` live again, after retire() has marked it as
  // freed. Does nothing if no block begins there.
  void unretire(std::uint64_t start) noexcept;
  // True if `Block`, not a later block at the same address, is marked as freed by retire() and is
  // not a hole yet.
  bool has_retired(const Block&) const noexcept;
  // Turns the block that begins at the address `start` into a hole, which later blocks may use. The
  // block may be live or marked as freed. Returns false if no block begins there.
  bool give(std::uint64_t start) noexcept;

  // Reserves host memory so that gain_memory(), which must not fail, can be called for `pages`
  // pages. The reserve lasts only until the next take() or announce_withheld(). May throw
  // std::bad_alloc, and has changed nothing then.
  void expect_memory(std::uint64_t pages) { nodes_.reserve(spare_nodes(2 * pages)); }
  // Turns bare pages into holes, after the caller has mapped memory there. `start` is the address
  // of the first page, and `bytes` the size of all pages. Pages that are not bare stay unchanged.
  void gain_memory(std::uint64_t start, std::uint64_t bytes) noexcept;
  // Turns free pages that have memory into bare pages, which have none. The caller has unmapped
  // their memory. `start` is the address of the first page, and `bytes` the size of all pages. No
  // block may lie in them, and no addresses that the packing withholds from requests.
  void lose_memory(std::uint64_t start, std::uint64_t bytes) noexcept;

  // Reserves host memory so that withhold(), which must not fail, can be called for `parts` more
  // parts of pages. A part is any stretch of addresses within one page, of whole steps (512 bytes).
  // May throw std::bad_alloc, and has changed nothing then.
  void announce_withheld(std::uint64_t parts);
  // Undoes announce_withheld() for `parts` parts of pages.
  void renounce_withheld(std::uint64_t parts) noexcept { withheld_parts_ -= parts; }
  // Keeps later blocks from the free addresses of a part of a page, because their memory serves
  // another page of addresses, or is lost. `start` is the part's address and `bytes` its size. The
  // part must have been announced by announce_withheld(). Addresses where a block lies now are not
  // withheld: once give() has made them a hole, withhold() must be called for them.
  void withhold(std::uint64_t start, std::uint64_t bytes) noexcept;
  // Ends the effect of withhold() on a part of a page: its free addresses become holes again.
  // `start` is the part's address and `bytes` its size. If the part is smaller than the one that
  // was withheld, the smaller part must have been announced by announce_withheld() as well.
  void release(std::uint64_t start, std::uint64_t bytes) noexcept;

  // Calls visit(first, end) for each block in the `bytes` from `start` on, in the order of
  // addresses. The block, live or marked as freed, takes the addresses from `first` up to `end`, as
  // far as they lie in these bytes.
  template <class Visit>
  void each_taken(std::uint64_t start, std::uint64_t bytes, const Visit& visit) const {
    const std::uint64_t end = start + bytes;
    auto at = blocks_.upper_bound(start);
    if (at != blocks_.begin()) --at;
    for (; at != blocks_.end() && at->first < end; ++at) {
      const std::uint64_t first = std::max(at->first, start),
                          last = std::min(at->first + nodes_[at->second].taken_bytes, end);
      if (first < last) visit(first, last);
    }
  }

  // Returns the block that begins at the address `start`; none if there is none or the program has
  // freed it.
  std::optional<Block> block_at(std::uint64_t start) const noexcept;
  // Returns the block in whose requested bytes the address lies; none if there is none or the
  // program has freed it.
  std::optional<Block> block_around(std::uint64_t address) const noexcept;
  // Records that the program has set (`on` true) or cleared CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the
  // block that begins at the address `start`. Does nothing if no block begins there.
  void set_sync_memops(std::uint64_t start, bool on) noexcept;

  // Returns the number of blocks, live ones and those that were freed by the program but not yet
  // made holes by give().
  std::uint64_t blocks() const noexcept { return blocks_.size(); }
  // Returns the sum of Block::taken_bytes of all blocks, including freed ones that give() has not
  // made holes yet.
  std::uint64_t taken_bytes() const noexcept { return taken_bytes_; }

 private:
  using Index = StretchIndex;
  using State = StretchState;
  // Size of the largest block: FreeTree counts the steps of a stretch in 32 bits.
  static constexpr std::uint64_t most_bytes = (UINT64_C(1) << 32) * step_bytes - step_bytes;

  Block block(const Stretch&) const noexcept;
  // Returns the number of unused nodes (of stretches) that must be there before a change that makes
  // `count` new ones. Two more are kept for each page that has memory, and two for each part that
  // is announced as withheld: they may be cut out of a larger stretch when their state changes. A
  // stretch that is cut is joined with its neighbours only after the cuts: that takes two nodes for
  // a moment.
  std::uint64_t spare_nodes(std::uint64_t count) const noexcept {
    return count + 2 * (withheld_parts_ + memory_pages_) + 2;
  }
  // Adds a region: one stretch of `bytes` from `start` on, in the given state.
  void add(std::uint64_t start, std::uint64_t bytes, State);
  // Returns the tree that holds all stretches of this state: `holes_` or `bare_`; null for other
  // states.
  FreeTree* tree_of(State) noexcept;
  // Sets the state of a stretch that is in no tree, and adds it to the tree of that state, if there
  // is one.
  void enter(Index, State) noexcept;
  // Removes the stretch from the tree that it is in, if any.
  void leave(Index) noexcept;
  // Returns the block (live or freed by the program) that begins at the address; 0 if there is
  // none.
  Index find(std::uint64_t start) const noexcept;
  // Returns a part of a hole in which a block of `wanted` bytes may begin; none if there is none.
  // `within_page`: true if the block must not cross a page's end.
  std::optional<FreePart> find_hole(std::uint64_t wanted, bool within_page) const noexcept;
  // Makes holes of bare pages, so that a block of `wanted` bytes has room. Returns the part of the
  // hole in which the block is to begin; none if there are too few bare pages in a row. May throw
  // std::bad_alloc, and has changed nothing then.
  std::optional<FreePart> make_hole(std::uint64_t wanted, bool within_page);
  // Joins the stretch with the one right after it, which must be in no tree.
  void absorb_after(Index) noexcept;
  // Cuts the stretch at the address: it keeps the part before. Returns the new stretch after the
  // address, which has the same state but is in no tree.
  Index split(Index, std::uint64_t at) noexcept;
  // Cuts `wanted` bytes from the address `start` on out of the hole. Returns the new stretch, which
  // is in no tree.
  Index cut_out(Index, std::uint64_t start, std::uint64_t wanted) noexcept;
  // Sets the state of a stretch that is in no tree, and joins it with its neighbours in the same
  // state. Returns the joined stretch.
  Index settle(Index, State) noexcept;
  // Links the stretch right behind `before`; if `before` is 0, as the first stretch of its region.
  void follow(Index before, Index) noexcept;
  // Changes the state `from` to `to` for all stretches, as far as they lie in the `bytes` from
  // `start` on. Returns the bytes that were changed.
  std::uint64_t turn(std::uint64_t start, std::uint64_t bytes, State from, State to) noexcept;
  // Returns the first stretch that ends after the address, in the last region that begins at or
  // below the address; 0 if there is none.
  Index first_ending_after(std::uint64_t address) const noexcept;
  bool is(State state, Index at) const noexcept { return at != 0 && nodes_[at].state == state; }

  StretchNodes nodes_;
  FreeTree holes_, bare_;
  // `withheld_parts_`: number of parts that were announced by announce_withheld() and not
  // renounced. `memory_pages_`: number of pages that have got memory by take() or gain_memory() and
  // not lost it.
  std::uint64_t withheld_parts_ = 0, memory_pages_ = 0;
  std::uint64_t taken_bytes_ = 0;
  // All blocks, live and retired, by the block's address.
  std::map<std::uint64_t, Index> blocks_;
  // Stretch at the start of each region, by the region's address.
  std::map<std::uint64_t, Index> regions_;
};

}  // namespace cuwarden::pool
