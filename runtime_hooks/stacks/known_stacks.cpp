#include "runtime_hooks/stacks/known_stacks.hpp"

#include <emmintrin.h>

#include <bit>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"

namespace cuwarden::stacks {
namespace {

// For functions that read stack memory with AddressSanitizer's red zones, or entries that another
// thread may overwrite meanwhile.
#define CUWARDEN_READS_ANYTHING __attribute__((no_sanitize("address", "thread"), always_inline))

// Returns the bits in which the word or pair at the address `at`, on the thread's own stack,
// differs from the given one.
CUWARDEN_READS_ANYTHING inline std::uint64_t difference(std::uint64_t at, std::uint64_t value) {
  using Word [[gnu::may_alias]] = std::uint64_t;
  return *reinterpret_cast<const Word*>(at) ^ value;
}

CUWARDEN_READS_ANYTHING inline __m128i difference(std::uint64_t at, const KnownStacks::Pair& pair) {
  const __m128i now = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  return _mm_xor_si128(now, _mm_load_si128(reinterpret_cast<const __m128i*>(&pair)));
}

CUWARDEN_READS_ANYTHING inline std::uint64_t address_of(std::uint64_t top,
                                                        KnownStacks::Offset offset) {
  return top + static_cast<std::uint64_t>(std::int64_t{offset});
}

CUWARDEN_READS_ANYTHING inline std::uint64_t first_difference(const KnownStacks::Entry& entry,
                                                              std::uint64_t start) {
  return (difference(start, entry.first.lower) & entry.first_lower_counts) |
         difference(start + 8, entry.first.upper);
}

// Returns the bits in which any value of the blocks differs from the stack's word at its offset,
// combined with `sum`; 0 if nothing differs. There is no branch for each block, because most stacks
// that are compared are unchanged.
template <class Block, class Sum>
CUWARDEN_READS_ANYTHING inline Sum differences(const Block* blocks, std::uint32_t bytes,
                                               std::uint64_t top, Sum sum) {
  for (const Block* block = blocks; bytes != 0; ++block, bytes -= std::uint32_t{sizeof(Block)}) {
    const auto changed = [&](std::size_t i) __attribute__((always_inline)) {
      return difference(address_of(top, block->offsets[i]), block->values[i]);
    };
    sum = sum | (changed(0) | changed(1)) | (changed(2) | changed(3));
  }
  return sum;
}
static_assert(KnownStacks::block == 4);

constinit std::atomic<std::uint64_t> next_serial{1};

bool is_being_written(std::uint64_t stamp) { return (stamp >> 32) % 2 != 0; }
// Returns the stamp for the entry's next state, with this name.
std::uint64_t next_stamp(std::uint64_t stamp, std::uint32_t name) {
  return ((stamp >> 32) + 1) << 32 | name;
}

}  // namespace

[[gnu::tls_model("initial-exec")]] constinit thread_local KnownStacks::Mine KnownStacks::mine_{};

KnownStacks::KnownStacks() noexcept : serial_(next_serial.fetch_add(1, relaxed)) {}

KnownStacks::~KnownStacks() {
  for (const std::atomic<Table*>& table : tables_) {
    if (Table* const made = table.load(relaxed)) Mapping(made, sizeof(Table)).reset();
  }
}

CUWARDEN_READS_ANYTHING inline bool KnownStacks::is_unchanged(const Entry& entry,
                                                              std::uint64_t start,
                                                              std::uint64_t top,
                                                              std::uint32_t& name) noexcept {
  const std::uint64_t stamp = entry.stamp.load(std::memory_order_acquire);
  if (entry.start.load(std::memory_order_acquire) != start) return false;
  const __m128i pairs =
      differences(entry.pair_blocks, load_field(entry.pair_bytes), top, _mm_setzero_si128());
  const std::uint64_t words =
      differences(entry.word_blocks, load_field(entry.word_bytes), top,
                  first_difference(entry, start) |
                      difference(address_of(top, entry.last_offset), entry.last_value));
  if (words != 0 || _mm_movemask_epi8(_mm_cmpeq_epi8(pairs, _mm_setzero_si128())) != 0xffff)
    return false;
  // All words are read before the stamp is looked at again.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  name = static_cast<std::uint32_t>(stamp);
  return entry.stamp.load(std::memory_order_acquire) == stamp;
}

std::uint32_t KnownStacks::find(std::uint64_t start) const noexcept {
  Mine& mine = mine_;
  if (mine.serial != serial_) return 0;
  Entry& expected = *mine.expected.load(relaxed);
  std::uint32_t name = 0;
  if (__builtin_expect(!is_unchanged(expected, start, own_stack.top, name), false))
    return find_elsewhere(mine, start);
  was_found(mine, expected);
  return name;
}

std::uint32_t KnownStacks::expected() const noexcept {
  const Mine& mine = mine_;
  if (mine.serial != serial_) return 0;
  return static_cast<std::uint32_t>(mine.expected.load(relaxed)->stamp.load(relaxed));
}

// A signal handler in between makes a wrong guess at worst.
CUWARDEN_READS_ANYTHING inline void KnownStacks::was_found(Mine& mine, Entry& entry) noexcept {
  mine.table->found.store(&entry, relaxed);
  mine.expected.store(entry.next.load(relaxed), relaxed);
}

// Notes that this entry followed the one that was found last.
void KnownStacks::was_not_expected(Mine& mine, Entry& entry) noexcept {
  mine.table->found.load(relaxed)->next.store(&entry, relaxed);
  was_found(mine, entry);
}

[[gnu::noinline]] std::uint32_t KnownStacks::find_elsewhere(Mine& mine,
                                                            std::uint64_t start) noexcept {
  const std::size_t at = set_of(start);
  Table& table = *mine.table;
  const std::uint64_t top = own_stack.top;
  const Set& set = table.sets[at];
  for (std::size_t way = 0; way < ways; ++way) {
    Entry& entry = table.entries[at * ways + way];
    if (set.starts[way].load(relaxed) != start || &entry == mine.expected.load(relaxed)) continue;
    const auto probe = std::bit_cast<Probe>(set.probes[way].load(relaxed));
    if (static_cast<std::uint32_t>(difference(address_of(top, probe.offset), probe.value)) != 0)
      continue;
    std::uint32_t name = 0;
    if (!is_unchanged(entry, start, top, name)) continue;
    was_not_expected(mine, entry);
    return name;
  }
  return 0;
}

[[gnu::cold]] KnownStacks::Table* KnownStacks::make_table(ThreadSlot thread) noexcept {
  Mapping memory = Mapping::anonymous(sizeof(Table));
  if (!memory) return nullptr;
  auto* const made = static_cast<Table*>(memory.data());
  made->found.store(made->entries, relaxed);
  Table* there = nullptr;
  // A signal handler may have stored a table meanwhile.
  if (!tables_[thread.number].compare_exchange_strong(there, made)) return there;
  memory.release();
  return made;
}

// Makes the thread's table ready in mine_. Returns false if there is none for this thread.
bool KnownStacks::take_table(ThreadSlot thread) noexcept {
  if (mine_.serial == serial_) return true;
  if (thread.number == 0) return false;
  Table* table = tables_[thread.number].load(std::memory_order_acquire);
  if (table == nullptr) table = make_table(thread);
  if (table == nullptr) return false;
  if (table->tenancy != thread.tenancy) {
    // The entries hold offsets in another thread's stack. A new table has none.
    if (table->tenancy != 0) forget(*table);
    // A signal handler that finds its own thread's tenancy must find no entry of another thread.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    table->tenancy = thread.tenancy;
  }
  mine_.serial = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  mine_.table = table;
  mine_.expected.store(table->entries, relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  mine_.serial = serial_;
  return true;
}

// Returns the entry of the set to write to; `ways` if none is to be overwritten.
std::size_t KnownStacks::choose_way(Table& table, std::size_t set) noexcept {
  for (std::size_t way = 0; way < ways; ++way) {
    if (table.sets[set].starts[way].load(relaxed) != 0) continue;
    const std::uint64_t stamp = table.entries[set * ways + way].stamp.load(relaxed);
    // An entry that is being written may stay so for ever, if a signal handler jumped out of the
    // walk.
    if (is_being_written(stamp)) continue;
    if (stamp != 0 || used_entries_.fetch_add(1, relaxed) < most_entries) return way;
    used_entries_.fetch_sub(1, relaxed);
  }
  const std::uint8_t refused = table.refused[set].load(relaxed);
  table.refused[set].store(static_cast<std::uint8_t>(refused + 1), relaxed);
  if (refused % reluctance != 0) return ways;
  // The victim is chosen by chance. In turns, more paths than ways, taken one after the other,
  // would never be recognised.
  const std::size_t victim = ++table.victims * 0x9e3779b9u >> 29;
  return table.entries[set * ways + victim].stamp.load(relaxed) != 0 ? victim : ways;
}

void KnownStacks::begin(Draft& draft, ThreadSlot thread, std::uint64_t start) noexcept {
  if (!take_table(thread)) return;
  Table& table = *mine_.table;
  const std::size_t at = set_of(start);
  const std::size_t way = choose_way(table, at);
  if (way == ways) return;
  Entry& entry = table.entries[at * ways + way];
  const std::uint64_t stamp = entry.stamp.load(relaxed);
  if (is_being_written(stamp)) return;
  for (std::size_t other = 0; other < ways; ++other)
    if (other != way && table.sets[at].starts[other].load(relaxed) == start)
      draft.other_ = &table.entries[at * ways + other];
  draft.table_ = &table;
  draft.entry_ = &entry;
  draft.way_ = way;
  draft.where_ = start;
  if (entry.next.load(relaxed) == nullptr) entry.next.store(&entry, relaxed);
  entry.stamp.store(next_stamp(stamp, 0), std::memory_order_release);
  table.sets[at].starts[way].store(0, relaxed);
  entry.start.store(0, std::memory_order_release);
}

// Returns the innermost word that the two stacks do not have in common.
KnownStacks::Probe KnownStacks::probe_for(const Entry& entry, const Entry& other) noexcept {
  const auto low_half = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  for (std::size_t i = 0; i < entry.pair_bytes / sizeof(Pairs) * block; ++i) {
    const Pairs& ours = entry.pair_blocks[i / block];
    const Pairs& theirs = other.pair_blocks[i / block];
    const std::uint64_t value = ours.values[i % block].upper;
    const Offset offset = ours.offsets[i % block];
    if (offset != theirs.offsets[i % block] || value != theirs.values[i % block].upper)
      return {offset + static_cast<Offset>(sizeof value), low_half(value)};
  }
  for (std::size_t i = 0; i < entry.word_bytes / sizeof(Words) * block; ++i) {
    const Words& ours = entry.word_blocks[i / block];
    const Words& theirs = other.word_blocks[i / block];
    const std::uint64_t value = ours.values[i % block];
    const Offset offset = ours.offsets[i % block];
    if (offset != theirs.offsets[i % block] || value != theirs.values[i % block])
      return {offset, low_half(value)};
  }
  return {entry.last_offset, low_half(entry.last_value)};
}

void KnownStacks::keep(Draft& draft, std::uint32_t name, std::uint32_t generation) noexcept {
  if (draft.entry_ == nullptr) return;
  Entry& entry = *draft.entry_;
  Set& set = draft.table_->sets[set_of(draft.where_)];
  std::atomic<std::uint64_t>& start = set.starts[draft.way_];
  if (generation_.load(std::memory_order_acquire) != generation) return draft.drop();
  const Probe probe = probe_for(entry, draft.other_ != nullptr ? *draft.other_ : entry);
  set.probes[draft.way_].store(std::bit_cast<std::uint64_t>(probe), relaxed);
  // While the stamp is odd, the entry has no name, and no signal handler writes to it.
  entry.start.store(draft.where_, std::memory_order_seq_cst);
  entry.stamp.store(next_stamp(entry.stamp.load(relaxed), name), std::memory_order_release);
  draft.entry_ = nullptr;
  start.store(draft.where_, std::memory_order_seq_cst);
  was_not_expected(mine_, entry);
  if (generation_.load(std::memory_order_seq_cst) == generation) return;
  // forget_all() may have missed the entry, which was stored meanwhile.
  start.store(0, relaxed);
  entry.start.store(0, std::memory_order_seq_cst);
}

void KnownStacks::Draft::drop() noexcept {
  if (entry_ == nullptr) return;
  entry_->stamp.store(next_stamp(entry_->stamp.load(relaxed), 0), std::memory_order_release);
  entry_ = nullptr;
}

void KnownStacks::forget(Table& table) noexcept {
  for (Set& set : table.sets) {
    for (std::atomic<std::uint64_t>& start : set.starts) start.store(0, relaxed);
  }
  for (Entry& entry : table.entries) {
    // Pages of entries that were never used are only read, so that they take no memory.
    if (entry.start.load(std::memory_order_seq_cst) != 0)
      entry.start.store(0, std::memory_order_seq_cst);
  }
}

void KnownStacks::forget_all() noexcept {
  generation_.fetch_add(1, std::memory_order_seq_cst);
  for (const std::atomic<Table*>& table : tables_) {
    if (Table* const made = table.load(std::memory_order_acquire)) forget(*made);
  }
}

#undef CUWARDEN_READS_ANYTHING

}  // namespace cuwarden::stacks
