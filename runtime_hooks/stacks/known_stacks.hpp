// Recognises stacks that have not changed since they were walked. What a walk finds follows from
// the words that it read; where all of them are as they were, so is the stack, and the name that
// the caller gave it is returned without a walk.
//
// A stack is looked for by the address where its walk began: in practice one thread's alone, so
// threads meet in the same entry only by chance. An entry's version is odd while it is written, and
// compared around each reading; nobody ever waits. The memory is one piece for all threads: none
// is left behind by those that end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/stacks/stack_bounds.hpp"

namespace cuwarden::stacks {

class KnownStacks {
 public:
  static constexpr std::size_t sets = 64, ways = 8;
  // What can be remembered of a stack: so many words, and so many pairs of neighbours. Most words
  // are return addresses; in a pair, the one below it is the saved rbp, which counts where the walk
  // has used it.
  static constexpr std::size_t places = 320;

  struct alignas(16) Pair {
    std::uint64_t lower, upper;
  };
  struct Entry {
    std::atomic<std::uint32_t> version;
    std::uint32_t name;
    std::uint32_t words, pairs;
    std::uint64_t start;
    Pair pair_values[places];
    std::uint64_t word_values[places];
    // Bytes from `start`.
    std::uint32_t pair_offsets[places];
    std::uint32_t word_offsets[places];
  };
  struct alignas(64) Set {
    std::atomic<std::uint64_t> starts[ways];  // 0: nothing there
  };
  // Which way was found last: loops that are entered from two places differ in their outermost
  // frames only, and are told apart only there.
  using Recent = std::atomic<std::uint8_t>;
  static constexpr std::size_t bytes =
      sets * sizeof(Set) + sets * ways * sizeof(Entry) + sets * sizeof(Recent);

  // `memory`: `bytes` of zeros, aligned to a cache line.
  explicit KnownStacks(void* memory) noexcept
      : sets_(static_cast<Set*>(memory)),
        entries_(reinterpret_cast<Entry*>(sets_ + sets)),
        recent_(reinterpret_cast<Recent*>(entries_ + sets * ways)) {}

  // The name, or 0. Reads only inside `own`.
  std::uint32_t find(std::uint64_t start, const Region& own) const noexcept;

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
    Entry* entry_ = nullptr;
    std::atomic<std::uint64_t>* start_ = nullptr;
    std::uint32_t generation_ = 0;
  };

  // Takes the place of the stack that is least worth, by chance. Leaves `draft` empty where another
  // thread, or the code that this signal handler interrupted, is writing there.
  void begin(Draft& draft, std::uint64_t start) noexcept;
  // The draft is whole.
  void keep(Draft& draft, std::uint32_t name) noexcept;

  // Rules have changed: names that are kept from now on are of walks that began later.
  void forget_all() noexcept;

 private:
  std::uint32_t find_in(std::size_t place, std::uint64_t start, std::uint64_t room) const noexcept;
  static std::size_t set_of(std::uint64_t start) noexcept {
    return start * 0x9e3779b97f4a7c15 >> 58;
  }
  static_assert(sets == 64);

  Set* sets_;
  Entry* entries_;
  Recent* recent_;
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<std::uint32_t> victims_{0};
};

}  // namespace cuwarden::stacks
