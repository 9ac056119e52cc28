#include "reporters/reachability/block_index.hpp"

#include <immintrin.h>

#include <algorithm>

namespace cuwarden::reachability {

namespace {

// Most granules that the filter may hold. With more, it would let too many words through.
constexpr std::uint64_t most_granules = std::uint64_t{1} << 16;
constexpr unsigned smallest_granule_shift = 12;

// Returns the number of granules of 2^shift bytes in which blocks lie. `blocks`: sorted by start.
std::uint64_t granules(const std::vector<Block>& blocks, unsigned shift) {
  std::uint64_t sum = 0, next = 0;  // granules before `next` are counted
  for (const Block& block : blocks) {
    const std::uint64_t first = std::max(block.start >> shift, next);
    const std::uint64_t behind = ((block.start + block.bytes - 1) >> shift) + 1;
    if (behind > first) sum += behind - first;
    next = std::max(next, behind);
  }
  return sum;
}

}  // namespace

BlockIndex::BlockIndex(std::span<const Block> blocks)
    : filter_((std::size_t{1} << filter_bits) / 64) {
  blocks_.reserve(blocks.size());
  for (Block block : blocks) {
    if (block.start == 0 || block.start == UINT64_MAX) continue;
    block.bytes = std::clamp<std::uint64_t>(block.bytes, 1, UINT64_MAX - block.start);
    blocks_.push_back(block);
  }
  if (blocks_.empty()) return;
  std::ranges::sort(blocks_, [](const Block& left, const Block& right) {
    return left.start != right.start ? left.start < right.start : left.bytes > right.bytes;
  });
  lowest_ = blocks_.front().start;
  ends_.reserve(blocks_.size());
  std::uint64_t end = 0;
  for (const Block& block : blocks_)
    ends_.push_back(end = std::max(end, block.start + block.bytes));
  span_ = end - lowest_;
  granule_shift_ = smallest_granule_shift;
  while (granules(blocks_, granule_shift_) > most_granules) ++granule_shift_;
  for (const Block& block : blocks_) {
    const std::uint64_t last = (block.start + block.bytes - 1) >> granule_shift_;
    for (std::uint64_t granule = block.start >> granule_shift_; granule <= last; ++granule) {
      const std::size_t bit = bit_of(granule << granule_shift_);
      filter_[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
  }
}

std::size_t BlockIndex::count_up_to(std::uint64_t word) const {
  const auto above = std::ranges::upper_bound(blocks_, word, {}, &Block::start);
  return static_cast<std::size_t>(above - blocks_.begin());
}

void BlockIndex::each_candidate(std::span<const std::uint64_t> words,
                                FunctionRef<void(std::size_t)> visit) const {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2)
    each_candidate_avx2(words, visit);
  else
    each_candidate_plain(words, visit);
}

void BlockIndex::each_candidate_plain(std::span<const std::uint64_t> words,
                                      const FunctionRef<void(std::size_t)>& visit) const {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (may_contain(words[i])) visit(i);
}

// Returns ones in the bits of each of four words that is in the span. AVX2 compares signed numbers
// only, so both sides are shifted by 2^63.
[[gnu::target("avx2"), gnu::always_inline]] static inline __m256i in_span(const std::uint64_t* four,
                                                                          __m256i shift,
                                                                          __m256i limit) {
  const __m256i loaded = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(four));
  return _mm256_cmpgt_epi64(limit, _mm256_sub_epi64(loaded, shift));
}

[[gnu::target("avx2")]] void BlockIndex::each_candidate_avx2(
    std::span<const std::uint64_t> words, const FunctionRef<void(std::size_t)>& visit) const {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  const __m256i shift = _mm256_set1_epi64x(static_cast<long long>(lowest_ ^ sign));
  const __m256i limit = _mm256_set1_epi64x(static_cast<long long>(span_ ^ sign));
  std::size_t i = 0;
  for (; i + 16 <= words.size(); i += 16) {
    const std::uint64_t* const at = words.data() + i;
    const __m256i a = in_span(at, shift, limit), b = in_span(at + 4, shift, limit);
    const __m256i c = in_span(at + 8, shift, limit), d = in_span(at + 12, shift, limit);
    const __m256i any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    if (_mm256_testz_si256(any, any) != 0) continue;
    for (std::size_t j = i; j < i + 16; ++j)
      if (may_contain(words[j])) visit(j);
  }
  for (; i < words.size(); ++i)
    if (may_contain(words[i])) visit(i);
}

}  // namespace cuwarden::reachability
