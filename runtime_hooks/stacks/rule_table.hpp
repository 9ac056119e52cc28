// Rules by program counter: one table for all threads, without locks. A slot is one word, so that
// it is always whole; each place in the code has one set of four slots, a cache line's half.
//
// A program counter has 47 bits. Multiplication by an odd number mixes them and loses none: the
// upper 13 of the product choose the set, the other 34 are kept beside the rule. So a rule is never
// found for an address that it was not stored for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

class RuleTable {
 public:
  static constexpr unsigned address_bits = 47;
  static constexpr unsigned set_bits = 13;
  static constexpr std::size_t ways = 4;
  static constexpr std::size_t bytes = (std::size_t{8} << set_bits) * ways;

  // `memory`: `bytes` of zeros, aligned to a cache line.
  explicit RuleTable(void* memory) noexcept
      : slots_(static_cast<std::atomic<std::uint64_t>*>(memory)) {}

  // An empty rule where none is known.
  [[gnu::always_inline]] Rule find(std::uint64_t address) const noexcept {
    if (address >> address_bits != 0) return {};
    const std::uint64_t mixed = mix(address);
    const std::atomic<std::uint64_t>* const set = set_of(mixed);
    for (std::size_t way = 0; way < ways; ++way) {
      const std::uint64_t rest = set[way].load(std::memory_order_relaxed) ^ tag(mixed);
      if (rest >> Rule::bits == 0) return Rule(static_cast<std::uint32_t>(rest));
    }
    return {};
  }

  void insert(std::uint64_t address, Rule rule) noexcept {
    if (address >> address_bits != 0) return;
    const std::uint64_t mixed = mix(address);
    std::atomic<std::uint64_t>* const set = set_of(mixed);
    std::size_t way = 0;
    while (way < ways && set[way].load(std::memory_order_relaxed) != 0) ++way;
    if (way == ways) way = victims_.fetch_add(1, std::memory_order_relaxed) % ways;
    set[way].store(tag(mixed) | rule.word(), std::memory_order_relaxed);
  }

  void clear() noexcept {
    for (std::size_t i = 0; i < bytes / sizeof *slots_; ++i)
      if (slots_[i].load(std::memory_order_relaxed) != 0)
        slots_[i].store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t address) noexcept {
    constexpr std::uint64_t odd = 0x9e3779b97f4b;
    return address * (odd << (64 - address_bits));
  }
  static constexpr std::uint64_t tag(std::uint64_t mixed) noexcept { return mixed << set_bits; }
  std::atomic<std::uint64_t>* set_of(std::uint64_t mixed) const noexcept {
    return slots_ + (mixed >> (64 - set_bits)) * ways;
  }
  static_assert(address_bits - set_bits + Rule::bits == 64);
  static_assert(sizeof(std::atomic<std::uint64_t>) == 8);

  std::atomic<std::uint64_t>* slots_;
  std::atomic<std::uint32_t> victims_{0};
};

}  // namespace cuwarden::stacks
