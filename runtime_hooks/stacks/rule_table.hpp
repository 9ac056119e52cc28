// A table of rules by the pc at which a frame goes on (its return address): one for all threads,
// without locks. A slot is one word, so that it is always whole. A pc is stored in its own slot or
// in one of the three after it.
//
// A pc has 47 bits. Multiplication by an odd number mixes them and loses none. The upper 15 bits of
// the product choose the slot. The other 32 are kept beside the rule, with the distance from the
// pc's own slot. So a rule is never found for another pc than its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/stacks/rule.hpp"

namespace cuwarden::stacks {

class RuleTable {
 public:
  static constexpr unsigned pc_bits = 47;
  static constexpr unsigned index_bits = 15;
  static constexpr std::size_t ways = 4;
  static constexpr std::size_t slots = (std::size_t{1} << index_bits) + ways - 1;
  static constexpr std::size_t bytes = (slots * 8 + 63) / 64 * 64;

  // `memory` must be `bytes` long and filled with zeros. It must outlive the table.
  explicit RuleTable(void* memory) noexcept
      : slots_(static_cast<std::atomic<std::uint64_t>*>(memory)) {}

  // Reads the pc's own slot. Returns its rule's word if the slot belongs to this pc, or else a
  // number for which is_rule() is false. Most rules are in their own slot.
  [[gnu::always_inline]] std::uint64_t first(std::uint64_t pc) const noexcept {
    const std::uint64_t mixed = mix(pc);
    const std::uint64_t rest =
        slots_[mixed >> (64 - index_bits)].load(std::memory_order_relaxed) ^ tag(mixed, 0);
    // A pc of more than 47 bits would be taken for another one.
    return pc >> pc_bits == 0 ? rest : ~std::uint64_t{0};
  }
  // True if the result of first() is a rule's word.
  static constexpr bool is_rule(std::uint64_t rest) noexcept { return rest >> Rule::bits == 0; }

  // Returns the rule for the pc; an empty rule if none is known.
  Rule find(std::uint64_t pc) const noexcept {
    if (pc >> pc_bits != 0) return {};
    const std::uint64_t mixed = mix(pc);
    for (std::size_t way = 0; way < ways; ++way) {
      const std::uint64_t rest = slot(mixed, way).load(std::memory_order_relaxed) ^ tag(mixed, way);
      if (is_rule(rest) && rest != 0) return Rule(static_cast<std::uint32_t>(rest));
    }
    return {};
  }

  // Stores a rule for the pc. If its four slots are taken, one of them is overwritten.
  void insert(std::uint64_t pc, Rule rule) noexcept {
    if (pc >> pc_bits != 0) return;
    const std::uint64_t mixed = mix(pc);
    std::size_t way = 0;
    while (way < ways && slot(mixed, way).load(std::memory_order_relaxed) != 0) ++way;
    if (way == ways) way = victims_.fetch_add(1, std::memory_order_relaxed) % ways;
    slot(mixed, way).store(tag(mixed, way) | rule.word(), std::memory_order_relaxed);
  }

  void clear() noexcept {
    for (std::size_t i = 0; i < slots; ++i)
      if (slots_[i].load(std::memory_order_relaxed) != 0)
        slots_[i].store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t pc) noexcept {
    constexpr std::uint64_t odd = 0x1e3779b97f4b;
    return pc * (odd << (64 - pc_bits));
  }
  static constexpr std::uint64_t tag(std::uint64_t mixed, std::uint64_t way) noexcept {
    return mixed << index_bits | way << Rule::bits;
  }
  std::atomic<std::uint64_t>& slot(std::uint64_t mixed, std::size_t way) const noexcept {
    return slots_[(mixed >> (64 - index_bits)) + way];
  }
  static_assert(pc_bits - index_bits + Rule::bits + 2 == 64 && ways == 4);
  static_assert(sizeof(std::atomic<std::uint64_t>) == 8);

  std::atomic<std::uint64_t>* slots_;
  std::atomic<std::uint32_t> victims_{0};
};

}  // namespace cuwarden::stacks
