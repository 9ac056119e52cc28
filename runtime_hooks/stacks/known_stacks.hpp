// Recognises stacks that have not changed since they were walked. What a walk finds follows from
// the words that it read; where all of them are as they were, so is the stack, and the name that
// the caller gave it is returned without a walk.
//
// Each thread has a table of its own. Programs repeat themselves: a stack is expected to be
// followed by the one that followed it last time, and any other is looked for by the address where
// its walk began. Nobody else writes there but a handler of the thread's signals, at any moment: an
// entry's stamp changes with it, and is compared around each reading. (Others only ever take starts
// away.) What is read need not be held against the stack's bounds: places are counted from the
// stack's top, and each that was ever stored lay in memory that stays readable for as long as the
// thread runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"

namespace cuwarden::stacks {

class KnownStacks {
  struct Table;

 public:
  KnownStacks() noexcept;
  ~KnownStacks();
  KnownStacks(const KnownStacks&) = delete;
  KnownStacks& operator=(const KnownStacks&) = delete;

  // Places of the stack: bytes from its top, and less than 0.
  using Place = std::int32_t;
  // Four at a time: that is what the processor can overlap. Places that are left over are those of
  // the block's first value.
  static constexpr std::size_t block = 4;
  // Most words are return addresses. The word below one is the saved rbp, which counts where the
  // walk has used it: they are compared as a pair.
  struct alignas(16) Pair {
    std::uint64_t lower, upper;
  };
  struct Pairs {
    Pair values[block];
    Place places[block];
  };
  struct alignas(16) Words {
    std::uint64_t values[block];
    Place places[block];
  };

  struct alignas(64) Entry {
    static constexpr std::size_t most_pairs = 64, most_words = 104;  // blocks

    // How often it was begun and kept, odd in between, and, in the lower half, the name.
    std::atomic<std::uint64_t> stamp;
    std::atomic<std::uint64_t> start;      // 0: of no stack
    std::uint32_t pair_bytes, word_bytes;  // of the blocks that are filled
    std::atomic<Entry*> next;              // what followed it last time; at first itself
    // The innermost pair lies at the start. It is compared word by word: both were written only
    // just now, and the processor waits before it reads two such words at once.
    Pair first;
    std::uint64_t first_lower_counts;  // all ones where the saved rbp counts, or 0
    // The outermost return address: often the only one without a pair.
    std::uint64_t last_value;
    Place last_place;
    Pairs pair_blocks[most_pairs];
    Words word_blocks[most_words];
  };

  static constexpr std::size_t sets = 32, ways = 8;
  // A word that tells a stack from another one of the same start, kept where many are looked
  // through: a place, and half the value.
  struct Probe {
    Place place;
    std::uint32_t value;
  };
  struct Set {
    std::atomic<std::uint64_t> starts[ways];  // 0: nothing there
    std::atomic<std::uint64_t> probes[ways];  // each a Probe
  };

  // An entry being written by the walk under way.
  class Draft {
   public:
    Draft() = default;
    ~Draft() { drop(); }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;

    void drop() noexcept;
    explicit operator bool() const noexcept { return entry_ != nullptr; }
    Entry& entry() noexcept { return *entry_; }

   private:
    friend KnownStacks;
    Table* table_ = nullptr;
    Entry* entry_ = nullptr;
    std::size_t way_ = 0;
    std::uint64_t where_ = 0;       // the walk began
    const Entry* other_ = nullptr;  // a stack of this start; null: there is none
  };

  // The name, or 0.
  std::uint32_t find(std::uint64_t start) const noexcept;
  // That of the stack that is looked at first; for tests.
  std::uint32_t expected() const noexcept;

  // Changes when names are forgotten.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  // On the thread's own stack. Leaves `draft` empty where the stack is not worth the trouble, and
  // where the code that this signal handler interrupted is writing there.
  void begin(Draft& draft, ThreadSlot, std::uint64_t start) noexcept;
  // The draft is whole. `generation`: the one in which the stack was given this name.
  void keep(Draft& draft, std::uint32_t name, std::uint32_t generation) noexcept;

  // Called when rules or names are no longer good.
  void forget_all() noexcept;

 private:
  // Of all threads together, 40 MiB. Beyond these, entries are written over.
  static constexpr std::uint32_t most_entries = 4096;
  // Where a set is full, most of its stacks are of more use than one that is met now: a program
  // with more paths than there is room for would write and write, and recognise none.
  static constexpr std::uint8_t reluctance = 8;

  struct Table {
    std::atomic<Entry*> found;  // last
    std::uint32_t tenancy;      // of the thread that fills it
    std::uint32_t victims;
    std::atomic<std::uint8_t> refused[KnownStacks::sets];
    Set sets[KnownStacks::sets];
    Entry entries[KnownStacks::sets * ways];
  };

  // The calling thread's. What recognising begins with is here: each step to it would be waited
  // for.
  struct Mine {
    std::atomic<Entry*> expected;
    Table* table;
    std::uint64_t serial;  // of the KnownStacks that it belongs to
  };
  bool take_table(ThreadSlot) noexcept;
  Table* make_table(ThreadSlot) noexcept;
  static void forget(Table&) noexcept;
  static void was_found(Mine&, Entry&) noexcept;
  static void was_not_expected(Mine&, Entry&) noexcept;
  static Probe probe_for(const Entry& entry, const Entry& other) noexcept;
  std::size_t choose_way(Table&, std::size_t set) noexcept;
  static bool is_unchanged(const Entry&, std::uint64_t start, std::uint64_t top,
                           std::uint32_t& name) noexcept;
  static std::uint32_t find_elsewhere(Mine&, std::uint64_t start) noexcept;
  // Frames begin at multiples of 16.
  static std::size_t set_of(std::uint64_t start) noexcept { return start / 16 % sets; }
  static_assert(ways == 8);

  [[gnu::tls_model("initial-exec")]] static constinit thread_local Mine mine_;

  const std::uint64_t serial_;
  std::atomic<Table*> tables_[ThreadSlot::count]{};  // none for threads without a number
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> used_entries_{0};
};

}  // namespace cuwarden::stacks
