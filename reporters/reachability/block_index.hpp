// Finds out quickly to which allocation a word of memory points, if to any. Nearly all words of a
// process point to none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::reachability {

// A range of addresses, or a handle, to which a search of memory finds pointers.
struct Block {
  std::uint64_t start = 0;  // first address of the range, or the handle
  // Number of addresses that belong to the block, from `start` on. A pointer to one of them counts
  // as a pointer to the block. 1 for a handle.
  std::uint64_t bytes = 1;
  // Number that the caller gives to the block; several blocks may have the same number.
  std::uint32_t id = 0;
  // Kind of the records that the CUDA driver keeps of the block in host memory, a number below
  // most_kinds. Blocks of one kind have records of the same form. no_records: the driver keeps no
  // records of the block.
  std::uint8_t kind = 0;
};
// most_kinds: number of values of Block::kind. no_records: value of Block::kind for a block of
// which the driver keeps no records.
inline constexpr std::uint8_t most_kinds = 32, no_records = UINT8_MAX;

// The blocks to which a search of memory finds pointers. They do not change once the index is made.
class BlockIndex {
 public:
  // Copies the blocks, which may overlap. Leaves out blocks that start at 0 or at the highest
  // address. Throws std::bad_alloc.
  explicit BlockIndex(std::span<const Block> blocks);

  // True if there is no block.
  bool empty() const { return blocks_.empty(); }
  // True if the word points to the start of a block or into one.
  bool contains(std::uint64_t word) const {
    bool does = false;
    each_block_at(word, [&](const Block&) { does = true; });
    return does;
  }
  // Calls visit(block) for each block to whose start or into which the word points. If more than 64
  // blocks begin between the start of a block and the word, that block may be left out.
  template <class Visit>
  void each_block_at(std::uint64_t word, const Visit& visit) const {
    if (!may_contain(word)) return;
    std::size_t i = count_up_to(word);
    // Blocks may overlap: a block that begins earlier may hold the word, even if a later one ends
    // before it.
    for (std::size_t tries = 0; i > 0 && ends_[i - 1] > word && tries < most_nested; ++tries) {
      const Block& block = blocks_[--i];
      if (word - block.start < block.bytes) visit(block);
    }
  }
  // Calls visit(i) for each words[i] that may point to a block or into one. Leaves out most words
  // that do not. Takes about 60 ps a byte if hardly any word does.
  void each_candidate(std::span<const std::uint64_t> words,
                      FunctionRef<void(std::size_t)> visit) const;

 private:
  // Binary logarithm of the number of bits of filter_, which takes 128 KiB: as much as a core's
  // second-level cache holds.
  static constexpr unsigned filter_bits = 20;

  // Most blocks that each_block_at() looks at for a word.
  static constexpr std::size_t most_nested = 64;

  // Returns the number of blocks that begin at or before the word.
  std::size_t count_up_to(std::uint64_t word) const;
  // Returns the index of the bit of filter_ for the word: a hash of the granule of addresses
  // (2^granule_shift_ bytes) in which the word lies.
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
  // Does the work of each_candidate() without vector instructions.
  void each_candidate_plain(std::span<const std::uint64_t> words,
                            const FunctionRef<void(std::size_t)>& visit) const;
  // Does the work of each_candidate() with instructions of AVX2, which the processor must have.
  void each_candidate_avx2(std::span<const std::uint64_t> words,
                           const FunctionRef<void(std::size_t)>& visit) const;

  std::vector<Block> blocks_;  // blocks, sorted by `start`
  // For each block of blocks_: the highest end (address behind the last byte) of this block and of
  // all blocks before it in blocks_.
  std::vector<std::uint64_t> ends_;
  // Filter of words: a bit for each value of bit_of(), the hash of a granule of 2^granule_shift_
  // addresses. The bit is 1 if a part of a block lies in a granule with this hash.
  std::vector<std::uint64_t> filter_;
  // Binary logarithm of the bytes of a granule, the unit of addresses in filter_; 0: no block.
  unsigned granule_shift_ = 0;
  std::uint64_t lowest_ = 0;  // lowest address of all blocks; 0: no block
  // Number of addresses from lowest_ to the highest end of a block; 0: no block.
  std::uint64_t span_ = 0;
};

}  // namespace cuwarden::reachability
