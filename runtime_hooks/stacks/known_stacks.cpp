#include "runtime_hooks/stacks/known_stacks.hpp"

#include <emmintrin.h>

#include <bit>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/mapping.hpp"

namespace cuwarden::stacks {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// The functions whose stack this is may have put AddressSanitizer's red zones there; the entry may
// be written over meanwhile.
#define CUWARDEN_READS_ANYTHING __attribute__((no_sanitize("address", "thread"), always_inline))

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

inline bool is_zero(std::uint64_t value) { return value == 0; }
inline bool is_zero(__m128i value) {
  return _mm_movemask_epi8(_mm_cmpeq_epi8(value, _mm_setzero_si128())) == 0xffff;
}

CUWARDEN_READS_ANYTHING inline std::uint64_t address_of(std::uint64_t top,
                                                        KnownStacks::Place place) {
  return top + static_cast<std::uint64_t>(std::int64_t{place});
}

// Whether the values are where they were.
template <class Block>
CUWARDEN_READS_ANYTHING inline bool are_unchanged(const Block* blocks, std::uint32_t count,
                                                  std::uint64_t top) {
  for (const Block* block = blocks; block != blocks + count; ++block) {
    const auto changed = [&](std::size_t i) __attribute__((always_inline)) {
      return difference(address_of(top, block->places[i]), block->values[i]);
    };
    if (!is_zero((changed(0) | changed(1)) | (changed(2) | changed(3)))) return false;
  }
  return true;
}
static_assert(KnownStacks::block == 4);

}  // namespace

KnownStacks::~KnownStacks() {
  for (const std::atomic<Table*>& table : tables_) {
    if (Table* const made = table.load(relaxed)) Mapping(made, sizeof(Table)).reset();
  }
}

CUWARDEN_READS_ANYTHING inline std::uint32_t KnownStacks::find_in(const Table& table,
                                                                  std::size_t set, std::size_t way,
                                                                  std::uint64_t start,
                                                                  std::uint64_t top) noexcept {
  if (table.sets[set].starts[way].load(std::memory_order_acquire) != start) return 0;
  const Entry& entry = table.entries[set * ways + way];
  const std::uint32_t version = entry.version.load(std::memory_order_acquire);
  const std::uint32_t name = load_field(entry.name);
  if (version % 2 != 0 || load_field(entry.start) != start) return 0;
  if (!are_unchanged(entry.pair_blocks, load_field(entry.pairs), top) ||
      !are_unchanged(entry.word_blocks, load_field(entry.words), top) ||
      difference(address_of(top, entry.last_place), entry.last_value) != 0)
    return 0;
  // All was read before the version is looked at again.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return entry.version.load(std::memory_order_acquire) == version ? name : 0;
}

std::uint32_t KnownStacks::find(ThreadSlot thread, std::uint64_t start) const noexcept {
  Table* const table = table_of(thread);
  const OwnStack& own = own_stack;
  if (table == nullptr || table->tenancy.load(relaxed) != thread.tenancy || !own.holds(start))
    return 0;
  const std::uint64_t top = own.top;
  const std::size_t set = set_of(start);
  if (const std::uint32_t name = find_in(*table, set, table->recent[set].load(relaxed), start, top))
    return name;
  return find_elsewhere(*table, set, start, top);
}

[[gnu::noinline]] std::uint32_t KnownStacks::find_elsewhere(Table& table, std::size_t set,
                                                            std::uint64_t start,
                                                            std::uint64_t top) noexcept {
  const std::size_t recent = table.recent[set].load(relaxed);
  for (std::size_t way = 0; way < ways; ++way) {
    if (way == recent || table.sets[set].starts[way].load(relaxed) != start) continue;
    const auto probe = std::bit_cast<Probe>(table.sets[set].probes[way].load(relaxed));
    if (static_cast<std::uint32_t>(difference(address_of(top, probe.place), probe.value)) != 0)
      continue;
    if (const std::uint32_t name = find_in(table, set, way, start, top)) {
      table.recent[set].store(static_cast<std::uint8_t>(way), relaxed);
      return name;
    }
  }
  return 0;
}

[[gnu::cold]] KnownStacks::Table* KnownStacks::make_table(ThreadSlot thread) noexcept {
  Mapping memory = Mapping::anonymous(sizeof(Table));
  if (!memory) return nullptr;
  auto* const made = static_cast<Table*>(memory.data());
  Table* there = nullptr;
  // A signal handler may have been here meanwhile.
  if (!tables_[thread.number].compare_exchange_strong(there, made)) return there;
  memory.release();
  return made;
}

// `ways`: none.
std::size_t KnownStacks::choose_way(Table& table, std::size_t set) noexcept {
  for (std::size_t way = 0; way < ways; ++way) {
    if (table.sets[set].starts[way].load(relaxed) != 0) continue;
    const std::uint32_t version = table.entries[set * ways + way].version.load(relaxed);
    // One that is being written may be so for ever: a signal handler jumped out of the walk.
    if (version % 2 != 0) continue;
    if (version != 0 || used_entries_.fetch_add(1, relaxed) < most_entries) return way;
    used_entries_.fetch_sub(1, relaxed);
  }
  const std::uint8_t refused = table.refused[set].load(relaxed);
  table.refused[set].store(static_cast<std::uint8_t>(refused + 1), relaxed);
  if (refused % reluctance != 0) return ways;
  // By chance, not in turns: then more paths than ways, taken in turns, would never be recognised.
  return ++table.victims * 0x9e3779b9u >> 29;
}

void KnownStacks::begin(Draft& draft, ThreadSlot thread, std::uint64_t start) noexcept {
  if (thread.number == 0) return;
  Table* table = table_of(thread);
  if (table == nullptr) table = make_table(thread);
  if (table == nullptr) return;
  if (table->tenancy.load(relaxed) != thread.tenancy) {
    // What is there are places of another thread's stack.
    forget(*table);
    table->tenancy.store(thread.tenancy, std::memory_order_release);
  }
  const std::size_t set = set_of(start);
  const std::size_t way = choose_way(*table, set);
  if (way == ways) return;
  Entry& entry = table->entries[set * ways + way];
  const std::uint32_t version = entry.version.load(relaxed);
  if (version % 2 != 0) return;
  const std::size_t recent = table->recent[set].load(relaxed);
  table->sets[set].starts[way].store(0, relaxed);
  entry.version.store(version + 1, std::memory_order_release);
  draft.entry_ = &entry;
  draft.set_ = &table->sets[set];
  draft.way_ = way;
  if (draft.set_->starts[recent].load(relaxed) == start)
    draft.recent_ = &table->entries[set * ways + recent];
  store_field(entry.start, start);
}

// The innermost word that they do not have in common.
KnownStacks::Probe KnownStacks::probe_for(const Entry& entry, const Entry& other) noexcept {
  const auto low_half = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  for (std::size_t i = 0; i < entry.pairs * block; ++i) {
    const Pairs& ours = entry.pair_blocks[i / block];
    const Pairs& theirs = other.pair_blocks[i / block];
    const std::uint64_t value = ours.values[i % block].upper;
    const Place place = ours.places[i % block];
    if (place != theirs.places[i % block] || value != theirs.values[i % block].upper)
      return {place + static_cast<Place>(sizeof value), low_half(value)};
  }
  for (std::size_t i = 0; i < entry.words * block; ++i) {
    const Words& ours = entry.word_blocks[i / block];
    const Words& theirs = other.word_blocks[i / block];
    const std::uint64_t value = ours.values[i % block];
    const Place place = ours.places[i % block];
    if (place != theirs.places[i % block] || value != theirs.values[i % block])
      return {place, low_half(value)};
  }
  return {entry.last_place, low_half(entry.last_value)};
}

void KnownStacks::keep(Draft& draft, std::uint32_t name, std::uint32_t generation) noexcept {
  if (draft.entry_ == nullptr) return;
  Entry& entry = *draft.entry_;
  store_field(entry.name, name);
  std::atomic<std::uint64_t>& start = draft.set_->starts[draft.way_];
  const Probe probe = probe_for(entry, draft.recent_ != nullptr ? *draft.recent_ : entry);
  draft.set_->probes[draft.way_].store(std::bit_cast<std::uint64_t>(probe), relaxed);
  const std::uint64_t where = entry.start;
  entry.version.store(entry.version.load(relaxed) + 1, std::memory_order_release);
  draft.entry_ = nullptr;
  if (generation_.load(std::memory_order_acquire) != generation) return;
  start.store(where, std::memory_order_seq_cst);
  // forget_all() may have come between.
  if (generation_.load(std::memory_order_seq_cst) != generation) start.store(0, relaxed);
}

void KnownStacks::Draft::drop() noexcept {
  if (entry_ == nullptr) return;
  store_field(entry_->start, 0);
  entry_->version.store(entry_->version.load(relaxed) + 1, std::memory_order_release);
  entry_ = nullptr;
}

void KnownStacks::forget(Table& table) noexcept {
  for (Set& set : table.sets) {
    for (std::atomic<std::uint64_t>& start : set.starts) start.store(0, std::memory_order_seq_cst);
  }
}

void KnownStacks::forget_all() noexcept {
  generation_.fetch_add(1, std::memory_order_seq_cst);
  for (const std::atomic<Table*>& table : tables_) {
    if (Table* const made = table.load(std::memory_order_acquire)) forget(*made);
  }
}

}  // namespace cuwarden::stacks
