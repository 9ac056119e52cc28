// Decides at which addresses blocks of any size lie in given regions. Each block takes the hole
// that fits best, in steps of 512 bytes. Space that is freed joins the holes beside it. The memory
// itself is never touched.
//
// Not safe for several threads at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace cuwarden::pool {

// A block: a stretch of addresses that was handed out for one request.
struct Block {
  std::uint64_t start = 0;        // The address at which the block begins.
  std::uint64_t bytes = 0;        // Bytes that the program asked for.
  std::uint64_t taken_bytes = 0;  // `bytes`, rounded up to a multiple of 512.
  std::uint64_t serial = 0;       // A number that no other block of the process ever has.
  bool sync_memops = false;       // True if the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
};

// Decides at which addresses blocks (one for each request) lie in given regions, without touching
// the memory there. A block is live until the program frees it, retired until the device is done
// with it, and then a hole.
//
// Not safe for several threads at once.
class Packing {
 public:
  // Bytes of a step: address and size of each block are multiples of it.
  static constexpr std::uint64_t step_bytes = 512;

  // Adds `bytes` of free addresses from `start` on, in which blocks may then lie. Both numbers are
  // multiples of 512 (step_bytes). Regions must not overlap. May throw std::bad_alloc, and has
  // changed nothing then.
  void add_region(std::uint64_t start, std::uint64_t bytes);
  // Removes the region (addresses that add_region() has added) that begins at the address `start`.
  // Returns false, with nothing removed, if there is none, or if a block or withheld addresses lie
  // in it.
  bool remove_region(std::uint64_t start) noexcept;

  // Returns a new block (addresses for one request) of `bytes`; none if `bytes` is 0 or no hole is
  // found that is large enough. Of holes of similar size, only 16 are looked at. May throw
  // std::bad_alloc, and has changed nothing then.
  std::optional<Block> take(std::uint64_t bytes);
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

  // Reserves host memory so that withhold(), which must not fail, can be called for `pages` more
  // pages (2 MiB of addresses each). May throw std::bad_alloc, and has changed nothing then.
  void announce_withheld(std::uint64_t pages);
  // Takes back announce_withheld() for `pages` pages, because withhold() will not be called for
  // them.
  void renounce_withheld(std::uint64_t pages) noexcept { withheld_pages_ -= pages; }
  // Keeps the free addresses of a page from later blocks, because another page of addresses uses
  // their memory. `start` is the page's address and `bytes` its size. The page must have been
  // announced by announce_withheld(). Must be called again after a block in the page has become a
  // hole.
  void withhold(std::uint64_t start, std::uint64_t bytes) noexcept;
  // Ends the effect of withhold() and announce_withheld() on a page: its free addresses become
  // holes again, which later blocks may use. `start` is the page's address and `bytes` its size.
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
                          last = std::min(at->first + node(at->second).taken_bytes, end);
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

 private:
  // Number of a node in `chunks_`; 0 means no node.
  using Index = std::uint32_t;
  // The use of a stretch of addresses. `hole`: free. `withheld`: free, but no block may use it.
  // `live`: a block of the program. `retired`: a block that the program has freed, but the device
  // may still use. `unused`: a node without addresses.
  enum class State : std::uint8_t { unused, hole, withheld, live, retired };
  // A stretch of addresses in a region: a block, a hole between blocks, or free addresses that are
  // withheld from blocks.
  struct Node {
    // The stretch's first address and its size, a multiple of 512 bytes.
    std::uint64_t start = 0, taken_bytes = 0;
    // Only for a block: bytes that the program asked for, and a number that no other block of the
    // process ever has.
    std::uint64_t bytes = 0, serial = 0;
    // The nodes of the stretches right before and after this one in the region; 0 at the region's
    // ends. In an unused node, `after` is the next unused node.
    Index before = 0, after = 0;
    // For a hole (free addresses between two blocks): index in `chunks_` of the previous and the
    // next hole in its bin, the list of holes of similar size; 0 at the list's ends.
    Index bin_before = 0, bin_after = 0;
    State state = State::unused;
    // Only for a block: true if the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
    bool sync_memops = false;
  };
  // Number of nodes (stretches of addresses) for which host memory is allocated at a time.
  static constexpr std::uint64_t chunk = 1024;

  // Holes are listed by size, in bins. There is one bin for each size below 32 (2^sub_bits) steps
  // of 512 bytes. Above, 32 bins divide the sizes from each power of two to the next, up to
  // 2^most_bits steps. The last bin also has all larger holes.
  static constexpr unsigned sub_bits = 5, most_bits = 40;
  // Number of bins (lists of holes of similar size).
  static constexpr unsigned bins = (most_bits - sub_bits + 1) << sub_bits;
  // Returns the index of the bin (a list of holes of similar size) for a hole of `bytes`.
  static unsigned bin_of(std::uint64_t bytes) noexcept;

  // Returns the node with this number, which must not be 0.
  Node& node(Index at) const noexcept { return chunks_[at / chunk][at % chunk]; }
  Block block(const Node&) const noexcept;
  void reserve_nodes(std::uint64_t count);
  Index new_node() noexcept;
  void drop_node(Index) noexcept;
  void link_hole(Index) noexcept;
  void unlink_hole(Index) noexcept;
  Index best_in(unsigned bin, std::uint64_t bytes) const noexcept;
  unsigned next_bin(unsigned from) const noexcept;
  Index find_hole(std::uint64_t bytes) const noexcept;
  Index find(std::uint64_t start) const noexcept;
  void absorb_after(Index) noexcept;
  void split(Index, std::uint64_t at) noexcept;
  Index first_ending_after(std::uint64_t address) const noexcept;
  bool is(State state, Index at) const noexcept { return at != 0 && node(at).state == state; }

  std::vector<std::unique_ptr<Node[]>> chunks_;
  // First node of the list of unused nodes; 0 if there is none.
  Index unused_ = 0;
  // Number of unused nodes, and number of pages announced by announce_withheld(). Each such page
  // may need two more nodes.
  std::uint64_t unused_count_ = 0, withheld_pages_ = 0;
  // For each bin, the hole at which its list begins; 0 if the bin is empty.
  std::array<Index, bins> first_in_bin_{};
  // A bit for each bin, by its index: set if the bin holds a hole.
  std::array<std::uint64_t, (bins + 63) / 64> filled_bins_{};
  // Nodes of all blocks, live and retired, by the block's address.
  std::map<std::uint64_t, Index> blocks_;
  // Node of the first stretch of each region, by the region's address.
  std::map<std::uint64_t, Index> regions_;
};

}  // namespace cuwarden::pool
