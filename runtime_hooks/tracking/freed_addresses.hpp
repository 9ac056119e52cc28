// Remembers which addresses the program has freed, roughly: whether an address was surely never
// freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cuwarden::tracking {

// A set of addresses that the program has freed, in 128 KiB. may_contain() is true for each of
// them, and sometimes for other addresses; the larger the set, the more often. No address leaves
// the set, also if it is allocated again. All functions may be called by several threads at once.
class FreedAddresses {
 public:
  // Adds an address. Takes about 2 ns.
  void add(std::uint64_t address) noexcept {
    const std::uint64_t bit = bit_of(address), mask = std::uint64_t{1} << (bit % 64);
    std::atomic<std::uint64_t>& word = words_[bit / 64];
    if ((word.load(std::memory_order_relaxed) & mask) == 0)
      word.fetch_or(mask, std::memory_order_relaxed);
  }
  // True if the address was added; sometimes true although it was not. False: it was never added.
  bool may_contain(std::uint64_t address) const noexcept {
    const std::uint64_t bit = bit_of(address);
    return (words_[bit / 64].load(std::memory_order_relaxed) >> (bit % 64) & 1) != 0;
  }

 private:
  // Logarithm to base 2 of the number of bits in `words_`, which take 128 KiB.
  static constexpr unsigned bits_log2 = 20;
  static std::uint64_t bit_of(std::uint64_t address) noexcept {
    return address * 0x9e37'79b9'7f4a'7c15ULL >> (64 - bits_log2);
  }
  std::atomic<std::uint64_t> words_[(std::size_t{1} << bits_log2) / 64]{};
};

}  // namespace cuwarden::tracking
