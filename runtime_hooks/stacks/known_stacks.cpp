#include "runtime_hooks/stacks/known_stacks.hpp"

#include <emmintrin.h>

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::stacks {
namespace {

constexpr KnownStacks::Words which[2] = {{0, ~std::uint64_t{0}},
                                         {~std::uint64_t{0}, ~std::uint64_t{0}}};

__m128i load(const KnownStacks::Words& words) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(&words));
}

// Whether all that counts is as it was. `room`: how far behind `start` a place can be read, both
// words. The entry may be overwritten meanwhile, by another thread that walks another stack: each
// place is held against that, and the caller looks at the version afterwards. The functions whose
// stack this is may have put AddressSanitizer's red zones there.
__attribute__((no_sanitize("address", "thread"))) bool is_unchanged(
    std::uint64_t start, std::uint64_t room, std::uint32_t count, const KnownStacks::Entry& entry) {
  const std::uint32_t* offset = entry.offsets;
  const KnownStacks::Words* words = entry.values;
  const __m128i zero = _mm_setzero_si128();
  __m128i changed = zero;
  // The innermost places first: most stacks that differ, differ there.
  for (std::uint32_t left = count; left != 0; ++offset, ++words) {
    const std::uint64_t at = *offset;
    if (at >= room) return false;
    const std::uint64_t whole = at & 1;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a place on the thread's own stack
    const auto* const place = reinterpret_cast<const __m128i*>(start + at - whole);
    changed = _mm_or_si128(
        changed,
        _mm_and_si128(_mm_xor_si128(_mm_loadu_si128(place), load(*words)), load(which[whole])));
    if (--left % 8 == 0 && _mm_movemask_epi8(_mm_cmpeq_epi8(changed, zero)) != 0xffff) return false;
  }
  // Before the version is looked at.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace

std::uint32_t KnownStacks::find(std::uint64_t start, const Region& own) const noexcept {
  const std::size_t at = set_of(start);
  for (std::size_t way = 0; way < ways; ++way) {
    if (sets_[at].starts[way].load(std::memory_order_acquire) != start) continue;
    const Entry& entry = entries_[at * ways + way];
    const std::uint32_t version = entry.version.load(std::memory_order_acquire);
    // Believed only once the version is seen not to have changed.
    const std::uint32_t count = load_field(entry.count);
    const std::uint32_t name = load_field(entry.name);
    if (version % 2 != 0 || load_field(entry.start) != start || count > places ||
        !own.holds(start) || !own.holds(start + sizeof(Words)))
      continue;
    const std::uint64_t room = own.count - sizeof(std::uint64_t) - (start - own.begin);
    if (is_unchanged(start, room, count, entry) &&
        entry.version.load(std::memory_order_acquire) == version)
      return name;
  }
  return 0;
}

void KnownStacks::begin(Draft& draft, std::uint64_t start) noexcept {
  const std::size_t at = set_of(start);
  std::size_t way = 0;
  while (way < ways && sets_[at].starts[way].load(std::memory_order_relaxed) != 0) ++way;
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
