// The longest life of those allocations of a group that the program has freed, in one word. An
// allocation of the group that has lived for longer will probably never be freed.
//
// A program that ends frees its last allocations then, which says nothing about how long it uses
// them. So the longest life is known with and without the frees in the last few percent of the run.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace cuwarden::ledger {

// The longest time from allocation to free among the freed allocations of one group, packed into
// one word. 0: none was freed. A life of 0 ns counts as none. Each time is stored with an error of
// at most 1/32 of itself.
class LongestLife {
 public:
  // Unpacks a word of word(), such as Counters::longest_life; 0: nothing was freed.
  explicit constexpr LongestLife(std::uint64_t word = 0) : word_(word) {}
  constexpr std::uint64_t word() const { return word_; }

  // Counts the free of an allocation. `now_ns`: time of the free, since process start. `life_ns`:
  // time from the allocation to the free.
  constexpr void freed(std::uint64_t now_ns, std::uint64_t life_ns) {
    const std::uint64_t now = code_of(now_ns), life = code_of(life_ns);
    if (now == interval())
      set(now, std::max(in_interval(), life), before());
    else
      set(now, life, std::max(in_interval(), before()));
  }
  // Adds the frees that `other` has counted, such as those of another thread.
  constexpr void add(LongestLife other) {
    if (other.interval() > interval()) std::swap(word_, other.word_);
    if (other.interval() == interval())
      set(interval(), std::max(in_interval(), other.in_interval()),
          std::max(before(), other.before()));
    else
      set(interval(), in_interval(), std::max({before(), other.before(), other.in_interval()}));
  }
  // Returns the longest life of a freed allocation in ns, rounded up. `end_ns`: time since process
  // start of the process's end or, while it runs, of this call. Frees in the last 3 to 6 % of that
  // time are left out. 0: no allocation was freed before.
  constexpr std::uint64_t ns(std::uint64_t end_ns) const {
    const bool is_late = interval() + 1 >= code_of(end_ns);
    const std::uint64_t code = is_late ? before() : std::max(before(), in_interval());
    return code == 0 ? 0 : time_of(code + 1);
  }

 private:
  // Code (code_of()) of the time, since process start, of the latest free; 0: nothing was freed.
  // Times with equal codes are in one interval. The word has three codes of 16 bits: this one,
  // in_interval() and before().
  constexpr std::uint64_t interval() const { return word_ & 0xffff; }
  // Code of the longest life of the allocations that were freed in interval(); 0: none was.
  constexpr std::uint64_t in_interval() const { return word_ >> 16 & 0xffff; }
  // Code of the longest life of the allocations that were freed before interval(); 0: none was.
  constexpr std::uint64_t before() const { return word_ >> 32 & 0xffff; }
  // Packs the three codes into the word.
  constexpr void set(std::uint64_t interval, std::uint64_t in_interval, std::uint64_t before) {
    word_ = interval | in_interval << 16 | before << 32;
  }
  // Number of lower bits of a double that code_of() leaves out: 47 of the fraction's 52.
  static constexpr int fraction_bits = 47;
  static constexpr std::uint64_t code_of_one = std::uint64_t{1023} << 5;
  // Returns the code of a time in ns: exponent and five highest fraction bits of the time as a
  // double, plus 1. The time is thus rounded down. 0 ns has the code 0.
  static constexpr std::uint64_t code_of(std::uint64_t ns) {
    if (ns == 0) return 0;
    return (std::bit_cast<std::uint64_t>(static_cast<double>(ns)) >> fraction_bits) - code_of_one +
           1;
  }
  // Returns the smallest time in ns for which code_of() returns `code`, which must not be 0.
  static constexpr std::uint64_t time_of(std::uint64_t code) {
    // Greater codes, which only a damaged ledger has, are no numbers of 64 bits.
    constexpr std::uint64_t largest = 63 * 32 + 32;
    return static_cast<std::uint64_t>(
        std::bit_cast<double>((std::min(code, largest) - 1 + code_of_one) << fraction_bits));
  }

  std::uint64_t word_;
};

}  // namespace cuwarden::ledger
