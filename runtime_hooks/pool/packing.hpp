// Where allocations of any size lie in regions of addresses: each in the hole that it fits best, in
// steps of 512 bytes. A hole that is left joins its neighbours. Nothing here touches the memory.
//
// Not for several threads at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace cuwarden::pool {

struct Block {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;        // asked for
  std::uint64_t taken_bytes = 0;  // in whole steps
  std::uint64_t serial = 0;       // no other block of the process ever has it
  bool sync_memops = false;       // the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
};

class Packing {
 public:
  static constexpr std::uint64_t step_bytes = 512;

  // Both in whole steps; regions do not overlap. May throw std::bad_alloc, and has done nothing
  // then.
  void add_region(std::uint64_t start, std::uint64_t bytes);
  // False: something lies in it.
  bool remove_region(std::uint64_t start) noexcept;

  // None: no hole is large enough. May throw std::bad_alloc, likewise.
  std::optional<Block> take(std::uint64_t bytes);
  // Freed by the program, but the place is kept until give(). None: no block begins there, or it is
  // retired already.
  std::optional<Block> retire(std::uint64_t start) noexcept;
  void unretire(std::uint64_t start) noexcept;
  // Not one that came to its place later.
  bool has_retired(const Block&) const noexcept;
  // A block, retired or not. False: none begins there.
  bool give(std::uint64_t start) noexcept;

  // What is free in a page is not to be taken any more, now and when its blocks are given, or is
  // again. A page that is withheld must have been announced, and is until it is free again.
  // announce() may throw std::bad_alloc, and has done nothing then.
  void announce_withheld(std::uint64_t pages);
  void renounce_withheld(std::uint64_t pages) noexcept { withheld_pages_ -= pages; }
  void withhold(std::uint64_t start, std::uint64_t bytes) noexcept;
  void release(std::uint64_t start, std::uint64_t bytes) noexcept;

  // Calls visit(first, end) for what blocks take of it, retired ones, too, by address.
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

  // Not of what is retired. The second one: that the address lies in.
  std::optional<Block> block_at(std::uint64_t start) const noexcept;
  std::optional<Block> block_around(std::uint64_t address) const noexcept;
  void set_sync_memops(std::uint64_t start, bool on) noexcept;

  std::uint64_t blocks() const noexcept { return blocks_.size(); }

 private:
  using Index = std::uint32_t;  // of a node; 0: none
  enum class State : std::uint8_t { unused, hole, withheld, live, retired };
  struct Node {
    std::uint64_t start = 0, taken_bytes = 0;
    std::uint64_t bytes = 0, serial = 0;  // of a block
    Index before = 0, after = 0;          // in its region, by address; of the unused: after
    Index bin_before = 0, bin_after = 0;  // of a hole
    State state = State::unused;
    bool sync_memops = false;
  };
  static constexpr std::uint64_t chunk = 1024;

  // Bins of holes: one for each number of steps up to 32, then 32 for each power of two.
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
  std::map<std::uint64_t, Index> blocks_;   // by start
  std::map<std::uint64_t, Index> regions_;  // the first node of each, by start
};

}  // namespace cuwarden::pool
