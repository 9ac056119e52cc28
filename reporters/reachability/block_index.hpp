// Finds out quickly which allocation a word of memory points to, if any. Nearly all words of a
// process point to none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// A range of addresses, or a handle, that is looked for in memory.
struct Block {
  std::uint64_t start = 0;  // first address, or the handle
  // Number of addresses from `start` on that count as pointers into the block; 1 for a handle.
  std::uint64_t bytes = 1;
  std::uint32_t id = 0;  // the caller's number for the block; several blocks may have one number
  // Kind of the records that the CUDA driver keeps of the block, a number below most_kinds; equal
  // kinds have records that are alike. no_records: the driver does not know the block.
  std::uint8_t kind = 0;
};
inline constexpr std::uint8_t most_kinds = 32, no_records = UINT8_MAX;

// The blocks that a scan looks for. Does not change once it is made.
class BlockIndex {
 public:
  // Copies the blocks. Blocks may overlap. Throws std::bad_alloc.
  explicit BlockIndex(std::span<const Block> blocks);

  // True if there is no block.
  bool empty() const { return blocks_.empty(); }
  // True if the word points to or into a block.
  bool contains(std::uint64_t word) const {
    bool does = false;
    each_block_at(word, [&](const Block&) { does = true; });
    return does;
  }
  // Calls visit(block) for each block that the word points to or into. If more than 64 blocks begin
  // between the start of a block and the word, that block may be left out.
  template <class Visit>
  void each_block_at(std::uint64_t word, const Visit& visit) const {
    if (!may_contain(word)) return;
    std::size_t i = count_up_to(word);
    // A block that ends before the word may lie inside another one that does not.
    for (std::size_t tries = 0; i > 0 && ends_[i - 1] > word && tries < most_nested; ++tries) {
      const Block& block = blocks_[--i];
      if (word - block.start < block.bytes) visit(block);
    }
  }
  // Calls visit(i) for each words[i] that may point to or into a block. Leaves out most words that
  // do not. Takes about 60 ps a byte if hardly any word does.
  void each_candidate(std::span<const std::uint64_t> words,
                      FunctionRef<void(std::size_t)> visit) const;

 private:
  // Number of bits of filter_: 128 KiB, which a core's second cache holds.
  static constexpr unsigned filter_bits = 20;

  static constexpr std::size_t most_nested = 64;

  // Returns the number of blocks that begin at or before the word.
  std::size_t count_up_to(std::uint64_t word) const;
  // Returns the bit of filter_ for the granule of addresses that holds the word.
  std::size_t bit_of(std::uint64_t word) const {
    return static_cast<std::size_t>(((word >> granule_shift_) * 0x9e37'79b9'7f4a'7c15ULL) >>
                                    (64 - filter_bits));
  }
  // False if the word certainly points to no block.
  bool may_contain(std::uint64_t word) const {
    if (word - lowest_ >= span_) return false;
    const std::size_t bit = bit_of(word);
    return (filter_[bit / 64] >> (bit % 64) & 1) != 0;
  }
  // each_candidate(), without and with instructions of AVX2.
  void each_candidate_plain(std::span<const std::uint64_t> words,
                            const FunctionRef<void(std::size_t)>& visit) const;
  void each_candidate_avx2(std::span<const std::uint64_t> words,
                           const FunctionRef<void(std::size_t)>& visit) const;

  std::vector<Block> blocks_;        // by `start`
  std::vector<std::uint64_t> ends_;  // for each block, the highest end of it and all before it
  // A bit for each granule of addresses in which a block lies, by its hash.
  std::vector<std::uint64_t> filter_;
  unsigned granule_shift_ = 0;  // binary logarithm of the granules' size in bytes
  std::uint64_t lowest_ = 0;    // lowest address of all blocks
  std::uint64_t span_ = 0;      // bytes from lowest_ to the end of the last block; 0: no block
};

}  // namespace cuwarden::reachability
