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

// An allocation in a region.
struct Block {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;        // Bytes that the program asked for.
  std::uint64_t taken_bytes = 0;  // Bytes that the block takes, rounded up to whole steps.
  std::uint64_t serial = 0;       // A number that no other block of the process ever has.
  bool sync_memops = false;       // True if the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
};

class Packing {
 public:
  // Blocks begin at multiples of this, and take multiples of it.
  static constexpr std::uint64_t step_bytes = 512;

  // Adds a region of free addresses. `start` and `bytes` are multiples of step_bytes; regions must
  // not overlap. May throw std::bad_alloc, and has changed nothing then.
  void add_region(std::uint64_t start, std::uint64_t bytes);
  // Removes the region that begins at `start`. Returns false if there is none or a block lies in
  // it.
  bool remove_region(std::uint64_t start) noexcept;

  // Returns a new block; none if `bytes` is 0 or no hole is large enough. May throw std::bad_alloc,
  // and has changed nothing then.
  std::optional<Block> take(std::uint64_t bytes);
  // Marks the block at `start` as freed by the program, and keeps its addresses until give().
  // Returns none if no live block begins there.
  std::optional<Block> retire(std::uint64_t start) noexcept;
  // Undoes retire().
  void unretire(std::uint64_t start) noexcept;
  // True if this very block is retired, and not a later block at the same address.
  bool has_retired(const Block&) const noexcept;
  // Turns the block at `start`, retired or not, into a hole. Returns false if no block begins
  // there.
  bool give(std::uint64_t start) noexcept;

  // withhold() keeps the free space in a page from being taken, now and when blocks in it are
  // given; release() ends that. Each page must have been counted in announce_withheld() before,
  // which reserves host memory. renounce_withheld() takes an announcement back, and release() uses
  // it up. announce_withheld() may throw std::bad_alloc, and has changed nothing then.
  void announce_withheld(std::uint64_t pages);
  void renounce_withheld(std::uint64_t pages) noexcept { withheld_pages_ -= pages; }
  void withhold(std::uint64_t start, std::uint64_t bytes) noexcept;
  void release(std::uint64_t start, std::uint64_t bytes) noexcept;

  // Calls visit(first, end) for each part of the range that a live or retired block takes, in the
  // order of addresses.
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

  // Returns the live block that begins at `start`, or that contains `address`. Retired blocks are
  // not found.
  std::optional<Block> block_at(std::uint64_t start) const noexcept;
  std::optional<Block> block_around(std::uint64_t address) const noexcept;
  // Sets Block::sync_memops of the live block that begins at `start`; does nothing if there is
  // none.
  void set_sync_memops(std::uint64_t start, bool on) noexcept;

  // Number of live and retired blocks.
  std::uint64_t blocks() const noexcept { return blocks_.size(); }

 private:
  using Index = std::uint32_t;  // Index of a node; 0 means none.
  enum class State : std::uint8_t { unused, hole, withheld, live, retired };
  // A stretch of addresses in a region: a block, a hole, or space that is withheld.
  struct Node {
    std::uint64_t start = 0, taken_bytes = 0;
    // Only for a block: the bytes asked for and its serial number.
    std::uint64_t bytes = 0, serial = 0;
    // The neighbours in the region, by address; 0 at its ends. In an unused node, `after` is the
    // next unused one.
    Index before = 0, after = 0;
    // The neighbours in the list of a bin of holes; only for a hole.
    Index bin_before = 0, bin_after = 0;
    State state = State::unused;
    bool sync_memops = false;
  };
  // Nodes that are allocated at once.
  static constexpr std::uint64_t chunk = 1024;

  // Bins of holes: one for each number of steps below 32, then 32 for each power of two.
  static constexpr unsigned sub_bits = 5, most_bits = 40;
  static constexpr unsigned bins = (most_bits - sub_bits + 1) << sub_bits;
  static unsigned bin_of(std::uint64_t bytes) noexcept;

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
  Index unused_ = 0;
  std::uint64_t unused_count_ = 0, withheld_pages_ = 0;
  std::array<Index, bins> first_in_bin_{};
  std::array<std::uint64_t, (bins + 63) / 64> filled_bins_{};
  std::map<std::uint64_t, Index> blocks_;   // Blocks, live and retired, by start.
  std::map<std::uint64_t, Index> regions_;  // First node of each region, by the region's start.
};

}  // namespace cuwarden::pool
