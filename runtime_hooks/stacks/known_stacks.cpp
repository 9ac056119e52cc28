#include "runtime_hooks/stacks/known_stacks.hpp"

#include <emmintrin.h>

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::stacks {
namespace {

// What makes both differ: zero where nothing does. The functions whose stack this is may have put
// AddressSanitizer's red zones there; the entry may be overwritten meanwhile.
#define CUWARDEN_READS_ANYTHING __attribute__((no_sanitize("address", "thread")))

CUWARDEN_READS_ANYTHING inline std::uint64_t difference(std::uint64_t at, std::uint64_t value) {
  using Word [[gnu::may_alias]] = std::uint64_t;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a place on the thread's own stack
  return *reinterpret_cast<const Word*>(at) ^ value;
}

CUWARDEN_READS_ANYTHING inline __m128i difference(std::uint64_t at, const KnownStacks::Pair& pair) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a place on the thread's own stack
  const __m128i now = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  return _mm_xor_si128(now, _mm_load_si128(reinterpret_cast<const __m128i*>(&pair)));
}

bool is_zero(std::uint64_t value) { return value == 0; }
bool is_zero(__m128i value) {
  return _mm_movemask_epi8(_mm_cmpeq_epi8(value, _mm_setzero_si128())) == 0xffff;
}

// Whether `count` values are where they were. `room`: how far behind `start` one can be read; the
// offsets may be another thread's by now, which walks another stack, so that each is held against
// it. Four at a time: that is what the processor can overlap.
template <class Value, class Difference>
CUWARDEN_READS_ANYTHING __attribute__((always_inline)) inline bool are_unchanged(
    std::uint64_t start, std::uint64_t room, const std::uint32_t* offsets, const Value* values,
    std::uint32_t count, Difference changed) {
  std::uint32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const std::uint64_t a = offsets[i], b = offsets[i + 1], c = offsets[i + 2], d = offsets[i + 3];
    if (a >= room || b >= room || c >= room || d >= room) return false;
    const auto first = difference(start + a, values[i]) | difference(start + b, values[i + 1]);
    const auto second = difference(start + c, values[i + 2]) | difference(start + d, values[i + 3]);
    if (!is_zero(first | second)) return false;
  }

  for (; i < count; ++i) {
    if (offsets[i] >= room) return false;
    changed = changed | difference(start + offsets[i], values[i]);
  }
  return is_zero(changed);
}

}  // namespace

std::uint32_t KnownStacks::find(std::uint64_t start, const Region& own) const noexcept {
  const std::size_t at = set_of(start);
  if (!own.holds(start) || !own.holds(start + sizeof(Pair))) return 0;
  const std::uint64_t room = own.count - sizeof(std::uint64_t) - (start - own.begin);
  const std::size_t recent = recent_[at].load(std::memory_order_relaxed) % ways;
  if (const std::uint32_t name = find_in(at * ways + recent, start, room)) return name;
  for (std::size_t way = 0; way < ways; ++way) {
    if (way == recent || sets_[at].starts[way].load(std::memory_order_relaxed) != start) continue;
    if (const std::uint32_t name = find_in(at * ways + way, start, room)) {
      recent_[at].store(static_cast<std::uint8_t>(way), std::memory_order_relaxed);
      return name;
    }
  }
  return 0;
}

// `place`: of an entry, in the order of sets and ways.
std::uint32_t KnownStacks::find_in(std::size_t place, std::uint64_t start,
                                   std::uint64_t room) const noexcept {
  if (sets_[place / ways].starts[place % ways].load(std::memory_order_acquire) != start) return 0;
  const Entry& entry = entries_[place];
  const std::uint32_t version = entry.version.load(std::memory_order_acquire);
  // Believed only once the version is seen not to have changed.
  const std::uint32_t words = load_field(entry.words), pairs = load_field(entry.pairs);
  const std::uint32_t name = load_field(entry.name);
  if (version % 2 != 0 || load_field(entry.start) != start || words > places || pairs > places)
    return 0;
  if (!are_unchanged(start, room, entry.pair_offsets, entry.pair_values, pairs, __m128i{}) ||
      !are_unchanged(start, room, entry.word_offsets, entry.word_values, words, std::uint64_t{}))
    return 0;
  // All was read before the version is looked at again.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return entry.version.load(std::memory_order_acquire) == version ? name : 0;
}

void KnownStacks::begin(Draft& draft, std::uint64_t start) noexcept {
  const std::size_t at = set_of(start);
  std::size_t way = 0;
  // One that is being written may be so for ever: a signal handler jumped out of the walk.
  const auto is_free = [&](std::size_t candidate) {
    return sets_[at].starts[candidate].load(std::memory_order_relaxed) == 0 &&
           entries_[at * ways + candidate].version.load(std::memory_order_relaxed) % 2 == 0;
  };
  while (way < ways && !is_free(way)) ++way;
  if (way == ways)
    // Not in turns: then more paths than ways, taken in turns, would never be recognised.
    way = (victims_.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b9u) >> 29;
  static_assert(ways == 8);
  Entry& entry = entries_[at * ways + way];
  std::uint32_t version = entry.version.load(std::memory_order_relaxed);
  if (version % 2 != 0 ||
      !entry.version.compare_exchange_strong(version, version + 1, std::memory_order_acq_rel))
    return;
  draft.entry_ = &entry;
  draft.start_ = &sets_[at].starts[way];
  draft.start_->store(0, std::memory_order_relaxed);
  draft.generation_ = generation_.load(std::memory_order_acquire);
  store_field(entry.start, start);
}

void KnownStacks::keep(Draft& draft, std::uint32_t name) noexcept {
  if (draft.entry_ == nullptr) return;
  Entry& entry = *draft.entry_;
  store_field(entry.name, name);
  std::atomic<std::uint64_t>* const start = draft.start_;
  const std::uint32_t generation = draft.generation_;
  const std::uint64_t where = entry.start;
  entry.version.fetch_add(1, std::memory_order_release);
  draft.entry_ = nullptr;
  if (generation_.load(std::memory_order_acquire) != generation) return;
  start->store(where, std::memory_order_release);
  // forget_all() may have come between.
  if (generation_.load(std::memory_order_seq_cst) != generation)
    start->store(0, std::memory_order_relaxed);
}

void KnownStacks::Draft::drop() noexcept {
  if (entry_ == nullptr) return;
  store_field(entry_->start, 0);
  entry_->version.fetch_add(1, std::memory_order_release);
  entry_ = nullptr;
}

void KnownStacks::forget_all() noexcept {
  generation_.fetch_add(1, std::memory_order_seq_cst);
  for (std::size_t at = 0; at < sets; ++at)
    for (std::atomic<std::uint64_t>& start : sets_[at].starts)
      start.store(0, std::memory_order_seq_cst);
}

}  // namespace cuwarden::stacks
