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

// Remembers stacks that were walked, so that an unchanged stack is recognised without a walk. The
// caller gives each stack a name (a number other than 0), which find() returns. Each thread has a
// table of its own stacks, which only the thread and its signal handlers fill.
class KnownStacks {
  struct Table;

 public:
  // Makes an object that knows no stacks. Tables are made as threads need them.
  KnownStacks() noexcept;
  ~KnownStacks();

  // The position of a word in a thread's stack: bytes from the stack's upper end, always negative.
  using Offset = std::int32_t;
  // Number of words, or of pairs of words, in a block. They are compared together, because the
  // processor overlaps so many comparisons. Unused positions of a block repeat its value at index
  // 0.
  static constexpr std::size_t block = 4;
  // A return address on the stack (`upper`) and the word right below it (`lower`), which is the
  // saved rbp if the walk of the stack used rbp. Both are compared in one operation.
  struct alignas(16) Pair {
    std::uint64_t lower, upper;
  };
  // A block of four pairs (a return address and the word below it), and the position of each pair
  // in the stack, in bytes from its upper end.
  struct Pairs {
    Pair values[block];  // the four pairs, as they lay on the stack when it was walked
    // Position of each pair's lower word: bytes from the stack's upper end, negative.
    Offset offsets[block];
  };
  // A block of four words of a stack, and the position of each in the stack, in bytes from its
  // upper end.
  struct alignas(16) Words {
    std::uint64_t values[block];  // the four words, as they lay on the stack when it was walked
    // Position of each word of `values`: bytes from the stack's upper end, negative.
    Offset offsets[block];
  };

  // One known stack: all words of the stack that its walk has read, with their positions. While
  // these words are unchanged, so is the stack.
  struct alignas(64) Entry {
    // Most blocks that an entry holds: blocks of four pairs (Pairs), and blocks of four single
    // words (Words). A stack that needs more is not remembered.
    static constexpr std::size_t most_pairs = 64, most_words = 104;

    // Lower half: the stack's name, a number that the caller of Unwinder::remember() chose. Upper
    // half: a counter, which is odd while the entry is written: it is raised at the beginning and
    // at the end. Readers compare the stamp before and after they read the entry.
    std::atomic<std::uint64_t> stamp;
    // Address of the innermost frame on the stack (its __builtin_frame_address), at which the walk
    // began. 0 if the entry holds no stack.
    std::atomic<std::uint64_t> start;
    // Size in bytes of the blocks in use at the beginning of `pair_blocks`, and of those at the
    // beginning of `word_blocks`. The blocks behind them have no meaning.
    std::uint32_t pair_bytes, word_bytes;
    // Entry of the stack that the thread had after this one the last time, which is expected to
    // follow again. Null until the entry is chosen for a stack for the first time, then the entry
    // itself until another stack has followed.
    std::atomic<Entry*> next;
    // The saved rbp and the return address of the innermost frame, at the address `start`. They are
    // compared word by word: both were written only just now, and the processor would wait if it
    // read them in one operation.
    Pair first;
    // Mask for the comparison of `first.lower`: all ones if the walk used this saved rbp, otherwise
    // 0.
    std::uint64_t first_lower_counts;
    // The outermost return address of the stack, which is at `last_offset`. It is often the only
    // one without a saved rbp below it.
    std::uint64_t last_value;
    // Position of the outermost return address: bytes from the stack's upper end, negative.
    Offset last_offset;
    // Pairs of words that the walk has read, in blocks of four pairs. The first `pair_bytes` bytes
    // of the array are in use.
    Pairs pair_blocks[most_pairs];
    // Single words that the walk has read, in blocks of four words. The first `word_bytes` bytes of
    // the array are in use.
    Words word_blocks[most_words];
  };

  // A thread's entries (known stacks) are sorted into 32 sets by the address at which the walk
  // began. Each set has eight entries (ways).
  static constexpr std::size_t sets = 32, ways = 8;
  // One word of a known stack that tells it from another one whose walk began at the same address.
  // `offset`: the word's position, in bytes from the upper end of the thread's stack (negative).
  // `value`: the lower 32 bits of the word. A search compares this word before the whole entry.
  struct Probe {
    Offset offset;        // position of the word: bytes from the stack's upper end, negative
    std::uint32_t value;  // lower 32 bits of the word that is compared
  };
  // Values that a search compares first, for the eight entries of one set. They lie close together,
  // so that a search reads little memory.
  struct Set {
    // For each entry, the address on the stack at which the walk began; 0 if a search must not find
    // the entry.
    std::atomic<std::uint64_t> starts[ways];
    // For each entry, the bits of its Probe: a word by which its stack differs from another one
    // whose walk began at the same address. If there was no other one when the stack was
    // remembered, the word is the outermost return address. 0 in an entry that was never used.
    std::atomic<std::uint64_t> probes[ways];
  };

  // An entry (a known stack) that is being written while the stack is walked. The destructor drops
  // the entry, unless KnownStacks::keep() was called for it.
  class Draft {
   public:
    Draft() = default;
    ~Draft() { drop(); }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;

    // Gives the draft up: its entry (a known stack) then holds no stack. Does nothing if the draft
    // has no entry.
    void drop() noexcept;
    // True if the draft has an entry to write to.
    explicit operator bool() const noexcept { return entry_ != nullptr; }
    // Returns the entry to write to. Must not be called for a draft without an entry.
    Entry& entry() noexcept { return *entry_; }

   private:
    friend KnownStacks;
    // The table that contains `entry_`; null if the draft has no entry.
    Table* table_ = nullptr;
    // The entry (a known stack) to write to; null if the draft has none.
    Entry* entry_ = nullptr;
    // Index of `entry_` in its set of eight entries. Means nothing if `entry_` is null.
    std::size_t way_ = 0;
    // The address on the stack at which the walk for `entry_` began. Means nothing if `entry_` is
    // null.
    std::uint64_t where_ = 0;
    // Another entry of the set whose walk began at the same address as that of `entry_`; null if
    // there is none.
    const Entry* other_ = nullptr;
  };

  // Returns the name that keep() gave to the calling thread's stack; 0 if the stack is not known or
  // has changed. `start` is the address of the innermost frame (its __builtin_frame_address), at
  // which a walk would begin. If the stack is known, remembers that it came, to guess which stack
  // comes next.
  std::uint32_t find(std::uint64_t start) const noexcept;
  // Returns the name (the number that keep() gave it) of the stack with which find() compares the
  // calling thread's stack first. If stack B came after stack A, and A was found again, B is
  // expected next. 0 if the thread has no known stacks. For tests.
  std::uint32_t expected() const noexcept;

  // Returns a number that each forget_all() raises. A caller reads it before it looks up a stack's
  // name, and passes it to keep(). So keep() sees if names have become invalid in between.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  // Chooses an entry for the calling thread's stack, and puts it into the empty `draft`, for the
  // walk to write to. `ThreadSlot` is the calling thread's. `start` is the address of the innermost
  // frame (its __builtin_frame_address). Leaves `draft` empty if there is no memory or `ThreadSlot`
  // has the number 0. The draft also stays empty if the caller is a signal handler that has
  // interrupted the writing of the chosen entry. If the set of entries for `start` is full, only
  // one of eight new stacks gets an entry; for the others, the draft stays empty, too.
  void begin(Draft& draft, ThreadSlot, std::uint64_t start) noexcept;
  // Finishes a draft after the whole stack was noted in its entry, so that find() recognises the
  // stack. `name` is the number that find() then returns, not 0. `generation` is the result of
  // generation() before the name was looked up; if it has changed since, the draft is dropped.
  void keep(Draft& draft, std::uint32_t name, std::uint32_t generation) noexcept;

  // Forgets all stacks of all threads, and raises the number that generation() returns. To be
  // called when code was unloaded or names of stacks have become invalid.
  void forget_all() noexcept;

 private:
  // Most entries (known stacks) of all threads together, which take 40 MiB. Once so many entries
  // were ever used, no unused one is taken into use any more. A new stack may then take an entry of
  // its set that was emptied. If the set has no such entry, the stack overwrites a used one at most
  // one time in eight, and otherwise is not remembered. A set without any used entry then remembers
  // no stack.
  static constexpr std::uint32_t most_entries = 4096;
  // In a set whose eight entries are in use, only one of so many new stacks overwrites an entry;
  // the others are not remembered. A program with more paths than entries would otherwise write all
  // the time and recognise no stack.
  static constexpr std::uint8_t reluctance = 8;

  // The known stacks of one thread. A new table is zeroed memory, except for `found`.
  struct Table {
    // The remembered stack of this thread that was found or written last. Never null: in a new
    // table, it is the first of `entries`, which holds no stack yet.
    std::atomic<Entry*> found;
    // ThreadSlot::tenancy of the thread that fills the table, which tells it from earlier threads
    // with its number. If the calling thread's differs, the entries are those of a thread that has
    // ended. 0 if no thread has filled the table.
    std::uint32_t tenancy;
    // Number of entries that were chosen for overwriting; a source of pseudo-random choices.
    std::uint32_t victims;
    // For each set, the number of new stacks that found the set full, modulo 256.
    std::atomic<std::uint8_t> refused[KnownStacks::sets];
    Set sets[KnownStacks::sets];              // values that a search compares first, by set
    Entry entries[KnownStacks::sets * ways];  // the stacks; entries of one set follow each other
  };

  // The calling thread's state for find(), in thread-local memory.
  struct Mine {
    // The entry that find() compares first; null only if there is no table.
    std::atomic<Entry*> expected;
    // The thread's table; not to be used if `serial` is not that of the KnownStacks.
    Table* table;
    // `serial_` of the KnownStacks object that the table belongs to; 0 if there is no table.
    std::uint64_t serial;
  };
  // Makes the calling thread's table of known stacks ready in `mine_`. Returns false if the thread
  // has none and none can be made.
  bool take_table(ThreadSlot) noexcept;
  // Makes the table of known stacks for the thread's number in `tables_`, and returns it; null if
  // there is no memory.
  Table* make_table(ThreadSlot) noexcept;
  // Empties a thread's table of known stacks.
  static void forget(Table&) noexcept;
  // Remembers that find() has found the entry (a known stack). The stack that followed it the last
  // time is then expected next.
  static void was_found(Mine&, Entry&) noexcept;
  // Remembers that the entry (a known stack) was found or written although another one was
  // expected. From then on, it is expected after the entry that was found before it.
  static void was_not_expected(Mine&, Entry&) noexcept;
  // Returns as a Probe a word in which the stack of `entry` differs from that of `other`. The
  // return addresses in pairs are compared before the single words, and in both cases inner ones
  // before outer ones. If all are equal, returns the outermost return address of `entry`.
  static Probe probe_for(const Entry& entry, const Entry& other) noexcept;
  // Chooses an entry of the table's set with the index `set` for a new stack. Returns the entry's
  // index in the set; `ways` if the stack is not to be remembered.
  std::size_t choose_way(Table&, std::size_t set) noexcept;
  // True if the calling thread's stack, walked from `start`, is still that of the entry; then
  // writes the stack's name to `name`. The name is 0 if the caller, a signal handler, has
  // interrupted keep() before it gave the entry a name. `top` is the upper end of the thread's
  // stack.
  static bool is_unchanged(const Entry&, std::uint64_t start, std::uint64_t top,
                           std::uint32_t& name) noexcept;
  // Compares the calling thread's stack, whose walk would begin at `start`, with all entries (known
  // stacks) of the set for this address. Returns the name (the number that keep() gave it) of the
  // entry that is unchanged; 0 if there is none.
  static std::uint32_t find_elsewhere(Mine&, std::uint64_t start) noexcept;
  // Returns the index of the set for stacks whose walk begins at this address, a multiple of 16.
  static std::size_t set_of(std::uint64_t start) noexcept { return start / 16 % sets; }
  static_assert(ways == 8);

  // The calling thread's table, and the stack that is expected next.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Mine mine_;

  // A number that no other KnownStacks of the process ever has.
  const std::uint64_t serial_;
  // The threads' tables of known stacks, by ThreadSlot::number; null: not made. Threads without a
  // number have none.
  std::atomic<Table*> tables_[ThreadSlot::count]{};
  // The number that generation() returns: how many times all stacks were forgotten.
  std::atomic<std::uint32_t> generation_{0};
  // Number of entries (known stacks) of all threads that were ever written.
  std::atomic<std::uint32_t> used_entries_{0};
};

}  // namespace cuwarden::stacks
