// Recognises stacks that have not changed since they were walked. The result of a walk follows from
// the words that it read. If all of them are unchanged, so is the stack, and the name that the
// caller gave it is returned without a walk.
//
// Each thread has a table of its own. Programs repeat themselves: a stack is expected to be
// followed by the one that followed it last time. Any other stack is looked for by the address at
// which its walk began.
//
// Only the thread itself writes to its table, and handlers of its signals, at any moment. An
// entry's stamp changes with the entry, and is compared before and after each reading. (Other
// threads only ever clear starts.)
//
// Reads need no check against the stack's bounds. Offsets count from the stack's top, and each that
// was ever stored lay in memory that stays readable as long as the thread runs.
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

  // An offset in the stack: bytes from its top, always negative.
  using Offset = std::int32_t;
  // Words in a block: the processor can overlap four comparisons. Unused positions of a block
  // repeat its first word.
  static constexpr std::size_t block = 4;
  // A return address (upper) and the word below it (lower). Most words are return addresses. The
  // word below one is the saved rbp, which counts if the walk used it; both are compared at once.
  struct alignas(16) Pair {
    std::uint64_t lower, upper;
  };
  // Four pairs and their offsets.
  struct Pairs {
    Pair values[block];
    Offset offsets[block];
  };
  // Four single words and their offsets.
  struct alignas(16) Words {
    std::uint64_t values[block];
    Offset offsets[block];
  };

  // One known stack: all words that its walk read, with their offsets.
  struct alignas(64) Entry {
    // The most blocks of each kind.
    static constexpr std::size_t most_pairs = 64, most_words = 104;

    // Upper half: how often the entry was begun and kept; odd while it is written. Lower half: the
    // stack's name.
    std::atomic<std::uint64_t> stamp;
    // The address at which the walk began; 0 if the entry holds no stack.
    std::atomic<std::uint64_t> start;
    std::uint32_t pair_bytes, word_bytes;  // Bytes of the blocks that are filled.
    // The stack that followed this one last time; at first the entry itself.
    std::atomic<Entry*> next;
    // The innermost pair, which lies at the start. It is compared word by word: both words were
    // written only just now, and the processor would wait before it reads two such words at once.
    Pair first;
    std::uint64_t first_lower_counts;  // All ones if the saved rbp of `first` counts, else 0.
    // The outermost return address, often the only one without a pair.
    std::uint64_t last_value;
    Offset last_offset;
    Pairs pair_blocks[most_pairs];
    Words word_blocks[most_words];
  };

  // Entries are sorted into sets by their start; a set has eight entries (ways).
  static constexpr std::size_t sets = 32, ways = 8;
  // A word that tells a stack from another one with the same start: its offset and the low half of
  // its value. It is kept where many stacks are searched.
  struct Probe {
    Offset offset;
    std::uint32_t value;
  };
  // The starts and probes of one set's entries, close together for the search.
  struct Set {
    std::atomic<std::uint64_t> starts[ways];  // 0 if the entry is not to be found.
    std::atomic<std::uint64_t> probes[ways];  // Each value is a Probe.
  };

  // An entry that the walk under way is writing.
  class Draft {
   public:
    Draft() = default;
    ~Draft() { drop(); }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;

    // Gives the draft up: the entry stays empty.
    void drop() noexcept;
    explicit operator bool() const noexcept { return entry_ != nullptr; }
    Entry& entry() noexcept { return *entry_; }

   private:
    friend KnownStacks;
    Table* table_ = nullptr;
    Entry* entry_ = nullptr;
    std::size_t way_ = 0;
    std::uint64_t where_ = 0;       // The address at which the walk began.
    const Entry* other_ = nullptr;  // Another stack with the same start; null if there is none.
  };

  // Returns the name of the unchanged stack whose walk would begin at `start`; 0 if none is known.
  std::uint32_t find(std::uint64_t start) const noexcept;
  // Returns the name of the stack that is compared first, 0 for none; for tests.
  std::uint32_t expected() const noexcept;

  // A number that changes when names are forgotten.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  // Begins an entry for the stack at `start`, which must be on the thread's own stack. Leaves
  // `draft` empty if the stack is not worth an entry, or if this is a signal handler that has
  // interrupted the entry's writer.
  void begin(Draft& draft, ThreadSlot, std::uint64_t start) noexcept;
  // Finishes a whole draft and gives it a name other than 0. `generation` is generation() at the
  // time when the name was found; if names were forgotten since, the draft is dropped.
  void keep(Draft& draft, std::uint32_t name, std::uint32_t generation) noexcept;

  // Forgets all stacks of all threads. Called when rules or names are no longer valid.
  void forget_all() noexcept;

 private:
  // The most entries of all threads together: 40 MiB. Beyond them, existing entries are
  // overwritten.
  static constexpr std::uint32_t most_entries = 4096;
  // In a full set, only one of so many new stacks overwrites an entry. A program with more paths
  // than entries would otherwise write all the time and recognise no stack.
  static constexpr std::uint8_t reluctance = 8;

  // The known stacks of one thread.
  struct Table {
    std::atomic<Entry*> found;  // The entry that was found last.
    std::uint32_t tenancy;  // ThreadSlot::tenancy of the thread that fills the table; 0: none yet.
    std::uint32_t victims;
    // New stacks that each full set has refused.
    std::atomic<std::uint8_t> refused[KnownStacks::sets];
    Set sets[KnownStacks::sets];
    Entry entries[KnownStacks::sets * ways];
  };

  // The calling thread's state. It holds all that recognising begins with, because the processor
  // would wait for each further indirection.
  struct Mine {
    std::atomic<Entry*> expected;
    Table* table;
    // `serial_` of the KnownStacks that the table belongs to; 0 if there is none.
    std::uint64_t serial;
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
  // Returns the set for a start. Frames begin at multiples of 16.
  static std::size_t set_of(std::uint64_t start) noexcept { return start / 16 % sets; }
  static_assert(ways == 8);

  [[gnu::tls_model("initial-exec")]] static constinit thread_local Mine mine_;

  const std::uint64_t serial_;
  // Tables by thread number; threads without a number have none.
  std::atomic<Table*> tables_[ThreadSlot::count]{};
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> used_entries_{0};
};

}  // namespace cuwarden::stacks
