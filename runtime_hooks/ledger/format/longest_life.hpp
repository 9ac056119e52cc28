// The longest life of the allocations of a group that the program has freed, in one word.
// Allocations that are live for longer than that will probably never be freed.
//
// Programs free what they still have when they end, which says nothing about how long a block is in
// use. So the longest life is known with and without the last few percent of the run.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace cuwarden::ledger {

// The longest life of a group's freed allocations. A word of zero stands for no free. Times are
// kept to within 1/32.
class LongestLife {
 public:
  // Takes the word as it is stored in the ledger.
  explicit constexpr LongestLife(std::uint64_t word = 0) : word_(word) {}
  constexpr std::uint64_t word() const { return word_; }

  // Counts a free at `now_ns` since process start of an allocation that has lived for `life_ns`.
  constexpr void freed(std::uint64_t now_ns, std::uint64_t life_ns) {
    const std::uint64_t now = code_of(now_ns), life = code_of(life_ns);
    if (now == interval())
      set(now, std::max(in_interval(), life), before());
    else
      set(now, life, std::max(in_interval(), before()));
  }
  // Adds the frees that another word counts.
  constexpr void add(LongestLife other) {
    if (other.interval() > interval()) std::swap(word_, other.word_);
    if (other.interval() == interval())
      set(interval(), std::max(in_interval(), other.in_interval()),
          std::max(before(), other.before()));
    else
      set(interval(), in_interval(), std::max({before(), other.before(), other.in_interval()}));
  }
  // Returns the longest life in ns, rounded up; 0: nothing was freed. `end_ns`: end of the process,
  // or present time, since its start. Leaves out frees in the last 3 to 6 % of that time.
  constexpr std::uint64_t ns(std::uint64_t end_ns) const {
    const bool is_late = interval() + 1 >= code_of(end_ns);
    const std::uint64_t code = is_late ? before() : std::max(before(), in_interval());
    return code == 0 ? 0 : time_of(code + 1);
  }

 private:
  // The word has three codes of times, of 16 bits each: the interval of the latest free, the
  // longest life of frees in that interval, and the longest life of those before it.
  constexpr std::uint64_t interval() const { return word_ & 0xffff; }
  constexpr std::uint64_t in_interval() const { return word_ >> 16 & 0xffff; }
  constexpr std::uint64_t before() const { return word_ >> 32 & 0xffff; }
  constexpr void set(std::uint64_t interval, std::uint64_t in_interval, std::uint64_t before) {
    word_ = interval | in_interval << 16 | before << 32;
  }
  // A code has the exponent of a time as a floating-point number and the five highest bits of its
  // fraction, plus 1.
  static constexpr int fraction_bits = 47;
  static constexpr std::uint64_t code_of_one = std::uint64_t{1023} << 5;
  static constexpr std::uint64_t code_of(std::uint64_t ns) {
    if (ns == 0) return 0;
    return (std::bit_cast<std::uint64_t>(static_cast<double>(ns)) >> fraction_bits) - code_of_one +
           1;
  }
  static constexpr std::uint64_t time_of(std::uint64_t code) {
    // Greater codes, which only a damaged ledger has, are no numbers of 64 bits.
    constexpr std::uint64_t largest = 63 * 32 + 32;
    return static_cast<std::uint64_t>(
        std::bit_cast<double>((std::min(code, largest) - 1 + code_of_one) << fraction_bits));
  }

  std::uint64_t word_;
};

}  // namespace cuwarden::ledger
