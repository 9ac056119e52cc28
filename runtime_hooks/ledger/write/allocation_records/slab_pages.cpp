#include "runtime_hooks/ledger/write/allocation_records/slab_pages.hpp"

#include <algorithm>
#include <array>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/clock.hpp"

namespace cuwarden::ledger {
namespace {

// Least locked bytes of which the holders are copied. Fewer bytes are not worth the time.
constexpr std::uint64_t least_copied = 16 << 20;
// Limits of the time for copying holders, since all records are looked at: at first this many
// nanoseconds, then one in `copying_share` of the process's time.
constexpr std::uint64_t copying_at_start_ns = 10'000'000, copying_share = 1000;
constexpr std::uint64_t copying_a_record_ns = 20;  // approximate

std::uint64_t thread_time_ns() noexcept { return time_ns_of(CLOCK_THREAD_CPUTIME_ID); }

// Changes of the locked bytes that a shard may keep to itself. Decreases may be larger than a page,
// so that a thread that fills and empties one page again and again disturbs no other thread.
constexpr std::int64_t most_kept_less = 2 * slab_page_bytes;
std::int64_t most_kept_more(const Series& series) noexcept {
  const std::uint64_t worst = series.worst_locked_bytes.load(relaxed);
  return static_cast<std::int64_t>(std::max<std::uint64_t>(16 << 10, worst / 4096));
}

}  // namespace

struct SlabPages::PieceSums {
  std::uint64_t count, bytes;  // number of the pieces; their bytes, as requested
  std::uint64_t locked_bytes;  // the pieces' equal parts of the locked bytes of their pages
};

bool SlabPages::create() noexcept {
  root_ = Mapping::anonymous(leaves * sizeof(std::atomic<Leaf*>));
  return static_cast<bool>(root_);
}

SlabPages::Leaf* SlabPages::find_leaf(std::uint64_t address) const noexcept {
  if (address >> address_bits != 0) return nullptr;
  const auto* const root = static_cast<const std::atomic<Leaf*>*>(root_.data());
  Leaf* const leaf = root[address >> (page_bits + leaf_bits)].load(std::memory_order_acquire);
  return leaf == nullptr ? nullptr : leaf + (address >> page_bits & ((1 << leaf_bits) - 1));
}

SlabPages::Leaf* SlabPages::find_or_make_leaf(std::uint64_t address) noexcept {
  if (Leaf* const found = find_leaf(address)) return found;
  Mapping made =
      address >> address_bits == 0 ? Mapping::anonymous(sizeof(Leaf) << leaf_bits) : Mapping();
  if (!made) return nullptr;
  auto* const root = static_cast<std::atomic<Leaf*>*>(root_.data());
  Leaf* none = nullptr;
  if (root[address >> (page_bits + leaf_bits)].compare_exchange_strong(
          none, static_cast<Leaf*>(made.data()), std::memory_order_acq_rel))
    made.release();
  return find_leaf(address);
}

SlabPage* SlabPages::find(std::uint64_t address, std::int32_t device) const noexcept {
  const Leaf* const leaf = find_leaf(address);
  if (leaf == nullptr) return nullptr;
  SlabPage* const rows = storage_.rows<SlabPage>(RegionId::slab_pages);
  for (std::uint32_t row = leaf->load(std::memory_order_acquire); row != 0;
       row = rows[row].next.load(std::memory_order_acquire))
    if (rows[row].device == device) return rows + row;
  return nullptr;
}

// Returns the row of the page on the device, made if needed. The address may have belonged to
// another device before, and may again: each device has its own row.
SlabPage* SlabPages::find_or_make(std::uint64_t address, std::int32_t device) noexcept {
  if (SlabPage* const page = find(address, device)) return page;
  Leaf* const leaf = find_or_make_leaf(address);
  if (leaf == nullptr) return nullptr;
  const auto row = static_cast<std::uint32_t>(storage_.allocate(RegionId::slab_pages, 1));
  if (row == 0) return nullptr;
  SlabPage* const rows = storage_.rows<SlabPage>(RegionId::slab_pages);
  SlabPage& made = rows[row];
  made.device = device;
  made.address = address / slab_page_bytes * slab_page_bytes;
  // If two threads add a page at once, the row of one of them stays unused.
  for (Leaf* slot = leaf;;) {
    std::uint32_t there = 0;
    if (slot->compare_exchange_strong(there, row, std::memory_order_acq_rel)) break;
    if (rows[there].device == device) return rows + there;
    slot = &rows[there].next;
  }
  made.state.store(1, std::memory_order_release);
  return &made;
}

// A piece of a page, packed into one word, which is never 0.
struct SlabPages::Piece {
  std::uint64_t series = 0, address = 0, bytes = 0;

  static constexpr unsigned series_bits = 6, bytes_bits = 21;
  static_assert(ThreadShard::series_limit == 1 << series_bits &&
                largest_slab_piece < 1 << bytes_bits);
  static_assert(address_bits - page_bits + series_bits + bytes_bits <= 64);

  static bool has_word(std::uint64_t series, std::uint64_t address) noexcept {
    return series < ThreadShard::series_limit && address >> address_bits == 0;
  }
  // Returns the piece in one word, without its offset in the page, which does not matter.
  std::uint64_t word() const noexcept {
    return (address >> page_bits) << (series_bits + bytes_bits) | series << bytes_bits | bytes;
  }
  static Piece of(std::uint64_t word) noexcept {
    return {word >> bytes_bits & (ThreadShard::series_limit - 1),
            word >> (series_bits + bytes_bits) << page_bits,
            word & ((std::uint64_t{1} << bytes_bits) - 1)};
  }
  std::uint64_t cut_bytes() const noexcept {
    return (bytes + slab_step_bytes - 1) / slab_step_bytes * slab_step_bytes;
  }
};

void SlabPages::change(GroupId id, DeviceAddress address, std::uint64_t bytes, bool more,
                       std::uint64_t now_ns) noexcept {
  const Piece piece{group(id).series, address.value, bytes};
  Series& series = series_row(piece.series);
  if (bytes == 0) return;
  if (!is_piece(address.value, bytes)) {
    const std::uint64_t lost = (0 - bytes) % slab_page_bytes;
    if (lost != 0) series.page_rounding_bytes.fetch_add(more ? lost : 0 - lost, relaxed);
    return;
  }
  ThreadShard& shard = thread_shards_.mine();
  if (!shard.is_shared()) {
    const bool has_word = Piece::has_word(piece.series, piece.address);
    if (has_word && now_ns != no_moment &&
        (more ? shard.change_freed_piece(piece.word(), 0) : keep_freed(shard, series, piece)))
      return;
    const std::uint64_t freed = shard.freed_piece();
    if (freed != 0 && shard.change_freed_piece(freed, 0))
      apply(shard, Piece::of(freed), false, now_ns);
  }
  apply(shard, piece, more, now_ns);
}

// A thread often frees a piece and at once allocates it again. So the freed piece is kept in the
// shard until the thread does something else, unless this free makes a new worst moment. On an
// H200, a pair of cudaMalloc and cudaFree of 4 KiB took 85.2 us with the kept piece and 87.6 us
// without it. Both are medians of seven runs in each of eight threads, which spread by 8 to 15 %.
bool SlabPages::keep_freed(ThreadShard& shard, const Series& series, const Piece& piece) noexcept {
  if (shard.freed_piece() != 0) return false;
  const std::uint64_t locked =
      series.slab_locked_bytes.load(relaxed) + shard.locked(piece.series).load(relaxed);
  if (static_cast<std::int64_t>(locked + piece.cut_bytes()) >
      static_cast<std::int64_t>(series.worst_locked_bytes.load(relaxed))) {
    // The free of a page's last piece lowers the locked bytes, so there is no new worst moment.
    const SlabPage* const page = find(piece.address, series.device);
    if (page == nullptr || SlabContents::of(page->contents.load(relaxed)).count != 1) return false;
  }
  return shard.change_freed_piece(0, piece.word());
}

void SlabPages::apply(ThreadShard& shard, const Piece& piece, bool more,
                      std::uint64_t now_ns) noexcept {
  Series& series = series_row(piece.series);
  SlabPage* const page =
      more ? find_or_make(piece.address, series.device) : find(piece.address, series.device);
  if (page == nullptr) return series.slabs_not_counted.store(1, relaxed);

  const std::uint32_t version =
      series.worst_version.load(std::memory_order_acquire) & ~slab_copying;
  if (page->at_worst_version.load(std::memory_order_acquire) != version)
    keep_contents(*page, version);
  const SlabContents one{1, piece.cut_bytes() / slab_step_bytes, piece.bytes};
  const std::uint64_t difference = more ? one.word() : 0 - one.word();
  const std::uint64_t before = page->contents.fetch_add(difference, std::memory_order_acq_rel);
  const auto was = SlabContents::of(before), is = SlabContents::of(before + difference);
  if (was.rounding_bytes() != is.rounding_bytes())
    series.page_rounding_bytes.fetch_add(is.rounding_bytes() - was.rounding_bytes(), relaxed);
  locked_changed(
      shard, series, piece.series,
      static_cast<std::int64_t>(is.locked_bytes()) - static_cast<std::int64_t>(was.locked_bytes()),
      now_ns);
}

// Copies the page's contents as they are before the caller's change. Another thread that is about
// to change them waits for the copy, but not without end. The copying thread may be one that the
// caller interrupted, or may have left by a longjmp; then a claim for an older moment is taken
// over.
void SlabPages::keep_contents(SlabPage& page, std::uint32_t version) noexcept {
  constexpr int attempts = 1000;
  std::uint32_t kept = page.at_worst_version.load(std::memory_order_acquire);
  for (int attempt = 0;; ++attempt) {
    const bool is_older = static_cast<std::int32_t>((version - kept) << 1) > 0;
    const bool is_claimed = (kept & slab_copying) != 0, is_left = attempt >= attempts;
    if (!is_older && (!is_claimed || is_left)) return;
    if ((!is_claimed || is_left) && page.at_worst_version.compare_exchange_strong(
                                        kept, version | slab_copying, std::memory_order_acq_rel))
      break;
    kept = page.at_worst_version.load(std::memory_order_acquire);
  }
  page.contents_at_worst.store(page.contents.load(relaxed), relaxed);
  page.at_worst_version.store(version, std::memory_order_release);
}

// Adds the difference to the series' number of locked bytes, or keeps it in the shard. While a
// shard keeps only decreases, no worst moment is missed, since the series' number is above the
// locked bytes.
void SlabPages::locked_changed(ThreadShard& shard, Series& series, std::size_t row,
                               std::int64_t difference, std::uint64_t now_ns) noexcept {
  // A change without a time is passed on at once. If it were kept, the number could rise above
  // the worst one.
  if (row < ThreadShard::series_limit && !shard.is_shared() && now_ns != no_moment) {
    std::atomic<std::uint64_t>& kept = shard.locked(row);
    shard.add(kept, static_cast<std::uint64_t>(difference));
    const auto sum = static_cast<std::int64_t>(kept.load(relaxed));
    if (sum >= -most_kept_less && sum <= (thread_shards_.several() ? most_kept_more(series) : 0))
      return;
    difference = static_cast<std::int64_t>(kept.exchange(0, relaxed));
  }
  const auto after = static_cast<std::int64_t>(series.slab_locked_bytes.fetch_add(
                         static_cast<std::uint64_t>(difference), std::memory_order_relaxed)) +
                     difference;
  if (now_ns != no_moment &&
      after > static_cast<std::int64_t>(series.worst_locked_bytes.load(relaxed)))
    reached(series, row, after, now_ns);
}

std::uint64_t SlabPages::locked_bytes(const Series& series) const noexcept {
  const auto told = static_cast<std::int64_t>(series.slab_locked_bytes.load(relaxed));
  return static_cast<std::uint64_t>(std::max<std::int64_t>(told, 0));
}

// Adds the changes that shards keep to themselves before the moment is called the worst.
void SlabPages::reached(Series& series, std::size_t row, std::int64_t known,
                        std::uint64_t now_ns) noexcept {
  if (row < ThreadShard::series_limit)
    thread_shards_.for_each([&](ThreadShard& shard) {
      known += static_cast<std::int64_t>(shard.locked(row).load(relaxed));
    });
  const auto locked_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(known, 0));
  std::uint64_t worst = series.worst_locked_bytes.load(relaxed);
  do {
    if (locked_bytes <= worst) return;
  } while (!series.worst_locked_bytes.compare_exchange_weak(worst, locked_bytes, relaxed));
  series.worst_page_rounding_bytes.store(series.page_rounding_bytes.load(relaxed), relaxed);
  series.worst_ns.store(now_ns, relaxed);
  series.worst_version.fetch_add(1, std::memory_order_acq_rel);
  const std::uint64_t copied = series.holders_locked_bytes.load(relaxed);
  if (locked_bytes >= std::max(least_copied, copied + copied / 8)) copy_holders(series, now_ns);
}

void SlabPages::copy_holders(Series& series, std::uint64_t now_ns) noexcept {
  if (!copy_lock_.try_lock()) return;
  const std::uint64_t groups = storage_.used(RegionId::groups);
  const std::uint64_t expected_ns = storage_.used(RegionId::records) * copying_a_record_ns;
  if (copying_ns_ + expected_ns <= copying_at_start_ns + now_ns / copying_share) {
    const std::uint64_t begun_ns = thread_time_ns();
    if (const Mapping memory = Mapping::anonymous(groups * sizeof(PieceSums))) {
      auto* const sums = static_cast<PieceSums*>(memory.data());
      const std::uint64_t seen = sum_pieces(series, sums, groups);
      series.holders_version.fetch_add(1, std::memory_order_acq_rel);
      store_holders(series, sums, groups);
      series.pieces_seen.store(seen, relaxed);
      store_reading(series);
      series.holders_ns.store(now_ns, std::memory_order_release);
      series.holders_version.fetch_add(1, std::memory_order_release);
    }
    copying_ns_ += thread_time_ns() - begun_ns;
  }
  copy_lock_.unlock();
}

// Returns true if the allocation's address fits the layout of slabs that is counted here.
bool SlabPages::fits(const Series& series, std::uint64_t address,
                     std::uint64_t bytes) const noexcept {
  if (is_piece(address, bytes)) return address % slab_step_bytes == 0;
  // An allocation of whole pages begins at a page's start, and no piece is in its first page.
  const SlabPage* const page = find(address, series.device);
  return address % slab_page_bytes == 0 &&
         (page == nullptr || SlabContents::of(page->contents.load(relaxed)).count == 0);
}

// Returns the number of pieces that shared their page.
std::uint64_t SlabPages::sum_pieces(Series& series, PieceSums* sums,
                                    std::uint64_t groups) const noexcept {
  std::uint64_t seen = 0, misfits = 0;
  const auto series_row =
      static_cast<std::uint32_t>(&series - storage_.rows<Series>(RegionId::series));
  const Record* const records = storage_.rows<Record>(RegionId::records);
  const std::uint64_t used = storage_.used(RegionId::records);
  for (std::uint64_t i = 1; i < used; ++i) {
    const Record& record = records[i];
    if (record.state.load(std::memory_order_acquire) % 2 == 0) continue;
    const std::uint32_t in = load_field(record.group);
    const std::uint64_t address = load_field(record.address), bytes = load_field(record.bytes);
    if (in >= groups || load_field(group({in}).series) != series_row ||
        load_field(record.space) != Space::pointer || bytes == 0 ||
        (load_field(record.flags) & (record_counts_no_bytes | record_in_pool)) != 0)
      continue;
    if (!fits(series, address, bytes)) ++misfits;
    if (!is_piece(address, bytes)) continue;
    const SlabPage* const page = find(address, series.device);
    if (page == nullptr) continue;
    const auto contents = SlabContents::of(page->contents.load(relaxed));
    if (contents.count > 1) ++seen;
    PieceSums& sum = sums[in];
    ++sum.count;
    sum.bytes += bytes;
    sum.locked_bytes += contents.locked_bytes() / std::max<std::uint64_t>(contents.count, 1);
  }
  // Each thread may keep a freed piece whose page other threads have taken since. The end of a
  // context leaves many of these at once, but they are gone at the next look.
  series.slabs_misfit.store(misfits > 2 * std::uint64_t{thread_shards_.used()} ? 1 : 0, relaxed);
  return seen;
}

void SlabPages::store_reading(Series& series) const noexcept {
  const Device* const devices = storage_.rows<Device>(RegionId::devices);
  const std::uint64_t used = storage_.used(RegionId::devices);
  for (std::uint64_t i = 1; i < used; ++i) {
    const Device& device = devices[i];
    if (device.state.load(std::memory_order_acquire) != 1 || device.ordinal != series.device ||
        device.at.load(relaxed) == static_cast<std::uint32_t>(ReadingAt::never))
      continue;
    const std::uint32_t version = device.version.load(std::memory_order_acquire);
    const std::uint64_t time_ns = device.time_ns.load(std::memory_order_acquire);
    const std::uint64_t free_bytes = device.free_bytes.load(std::memory_order_acquire);
    const std::uint64_t idle_bytes = device.memory_pool_idle_bytes.load(std::memory_order_acquire);
    // While the reading changes, the one that is already stored is good enough.
    if (version % 2 != 0 || device.version.load(relaxed) != version) return;
    series.read_free_bytes.store(free_bytes, relaxed);
    series.read_memory_pool_idle_bytes.store(idle_bytes, relaxed);
    series.read_ns.store(std::max<std::uint64_t>(time_ns, 1), relaxed);
  }
}

void SlabPages::store_holders(Series& series, const PieceSums* sums,
                              std::uint64_t groups) noexcept {
  std::array<std::uint32_t, worst_holder_count + 1> most{};
  std::uint64_t locked_bytes = 0;
  for (std::uint32_t i = 1; i < groups; ++i) {
    if (sums[i].count == 0) continue;
    locked_bytes += sums[i].locked_bytes;
    most.back() = i;
    for (std::size_t at = worst_holder_count;
         at > 0 && sums[most[at]].locked_bytes > sums[most[at - 1]].locked_bytes; --at)
      std::swap(most[at], most[at - 1]);
  }
  std::uint32_t first = series.first_holder.load(relaxed);
  if (first == 0) {
    first =
        static_cast<std::uint32_t>(storage_.allocate(RegionId::worst_holders, worst_holder_count));
    if (first == 0) return;
    series.first_holder.store(first, std::memory_order_release);
  }
  WorstHolder* const rows = storage_.rows<WorstHolder>(RegionId::worst_holders) + first;
  for (std::size_t i = 0; i < worst_holder_count; ++i) {
    const PieceSums& sum = sums[most[i]];
    store_field(rows[i].group, most[i]);
    store_field(rows[i].count, sum.count);
    store_field(rows[i].bytes, sum.bytes);
    store_field(rows[i].locked_bytes, sum.locked_bytes);
  }
  series.holders_locked_bytes.store(locked_bytes, std::memory_order_release);
}

}  // namespace cuwarden::ledger
