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

// A table of rules for leaving frames, by the address (pc) at which the frame goes on: its return
// address. One table serves all threads, without locks, in slots of one word.
class RuleTable {
 public:
  // Number of bits of a code address (pc) of a program. The table keeps no rule for an address with
  // more.
  static constexpr unsigned pc_bits = 47;
  // Number of bits of a code address (pc), after mixing, that choose its slot.
  static constexpr unsigned index_bits = 15;
  // Number of neighbouring slots in which the rule for a code address (pc) may lie.
  static constexpr std::size_t ways = 4;
  // Number of slots in the table, each with room for the rule of one code address.
  static constexpr std::size_t slots = (std::size_t{1} << index_bits) + ways - 1;
  // Bytes of memory that the table needs, a multiple of 64.
  static constexpr std::size_t bytes = (slots * 8 + 63) / 64 * 64;

  // `memory` has RuleTable::bytes bytes, filled with zeros. The caller keeps it as long as the
  // table.
  explicit RuleTable(void* memory) noexcept
      : slots_(static_cast<std::atomic<std::uint64_t>*>(memory)) {}

  // Looks for the rule of `pc` (a return address), by which a stack walk leaves the frame, in the
  // slot where it is expected. Returns the rule's Rule::word(), which is not 0, if the rule lies
  // there. Otherwise returns 0, or a number for which is_rule() is false. Then find() may still
  // find the rule in another slot.
  [[gnu::always_inline]] std::uint64_t first(std::uint64_t pc) const noexcept {
    const std::uint64_t mixed = mix(pc);
    const std::uint64_t rest =
        slots_[mixed >> (64 - index_bits)].load(std::memory_order_relaxed) ^ tag(mixed, 0);
    // A pc of more than 47 bits would be taken for another one.
    return pc >> pc_bits == 0 ? rest : ~std::uint64_t{0};
  }
  // True if `rest`, a result of first(), is the word of the rule that was looked for
  // (Rule::word()). Also true if `rest` is 0: then no rule was found. False if the slot has the
  // rule of another code address, and for most code addresses if the slot is empty.
  static constexpr bool is_rule(std::uint64_t rest) noexcept { return rest >> Rule::bits == 0; }

  // Returns the rule for leaving the frame that goes on at `pc` (a return address); an empty rule
  // if the table has none. Looks into each of the four slots in which the rule may lie.
  Rule find(std::uint64_t pc) const noexcept {
    if (pc >> pc_bits != 0) return {};
    const std::uint64_t mixed = mix(pc);
    for (std::size_t way = 0; way < ways; ++way) {
      const std::uint64_t rest = slot(mixed, way).load(std::memory_order_relaxed) ^ tag(mixed, way);
      if (is_rule(rest) && rest != 0) return Rule(static_cast<std::uint32_t>(rest));
    }
    return {};
  }

  // Stores the rule for leaving the frame in which the program goes on at `pc`, the address to
  // which a call returns. Does not look for a rule that the table has for `pc` already. If the four
  // slots in which rules for `pc` may lie are taken, one of their rules is overwritten. Ignores
  // addresses of more than 47 bits.
  void insert(std::uint64_t pc, Rule rule) noexcept {
    if (pc >> pc_bits != 0) return;
    const std::uint64_t mixed = mix(pc);
    std::size_t way = 0;
    while (way < ways && slot(mixed, way).load(std::memory_order_relaxed) != 0) ++way;
    if (way == ways) way = victims_.fetch_add(1, std::memory_order_relaxed) % ways;
    slot(mixed, way).store(tag(mixed, way) | rule.word(), std::memory_order_relaxed);
  }

  // Removes all rules from the table. To be called when code may have been replaced, since rules of
  // the old code would be wrong.
  void clear() noexcept {
    for (std::size_t i = 0; i < slots; ++i)
      if (slots_[i].load(std::memory_order_relaxed) != 0)
        slots_[i].store(0, std::memory_order_relaxed);
  }

 private:
  // Returns a number whose upper 47 bits are those of the code address `pc`, mixed without loss.
  static constexpr std::uint64_t mix(std::uint64_t pc) noexcept {
    constexpr std::uint64_t odd = 0x1e3779b97f4b;
    return pc * (odd << (64 - pc_bits));
  }
  // Returns the upper bits of a slot's word, above the rule. They hold the bits of the mixed code
  // address (`mixed`, from mix()) that do not choose the slot, and the slot's distance `way` from
  // the expected one.
  static constexpr std::uint64_t tag(std::uint64_t mixed, std::uint64_t way) noexcept {
    return mixed << index_bits | way << Rule::bits;
  }
  // Returns the slot at the distance `way` (0 to 3) from the one where the mixed code address
  // (`mixed`, from mix()) is expected.
  std::atomic<std::uint64_t>& slot(std::uint64_t mixed, std::size_t way) const noexcept {
    return slots_[(mixed >> (64 - index_bits)) + way];
  }
  static_assert(pc_bits - index_bits + Rule::bits + 2 == 64 && ways == 4);
  static_assert(sizeof(std::atomic<std::uint64_t>) == 8);

  std::atomic<std::uint64_t>* slots_;  // array of `slots` words; 0: an empty slot
  // Number of unwind rules that were overwritten by new ones, because all four slots for the new
  // rule were taken. Modulo 4, it chooses the slot that is overwritten next.
  std::atomic<std::uint32_t> victims_{0};
};

}  // namespace cuwarden::stacks
