// The worst moment of slabs, compared with a model that counts each page.
#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/ledger/slab_pages_fixture.hpp"

namespace cuwarden::ledger {
namespace {

// A simple and slow count of the pages, by address.
class Model {
 public:
  void add(std::uint64_t address, std::uint64_t bytes) { pieces_[address / page][address] = bytes; }
  void remove(std::uint64_t address) {
    auto& in_page = pieces_[address / page];
    in_page.erase(address);
    if (in_page.empty()) pieces_.erase(address / page);
  }
  std::uint64_t locked() const {
    std::uint64_t sum = 0;
    for (const auto& [number, in_page] : pieces_) sum += locked_in(in_page);
    return sum;
  }
  using Pieces = std::map<std::uint64_t, std::uint64_t>;
  const std::map<std::uint64_t, Pieces>& pages() const { return pieces_; }

 private:
  static std::uint64_t locked_in(const Pieces& pieces) {
    std::uint64_t cut = 0;
    for (const auto& [address, bytes] : pieces) cut += (bytes + 511) / 512 * 512;
    return page - cut;
  }
  std::map<std::uint64_t, Pieces> pieces_;
};

TEST_F(SlabPagesTest, the_worst_moment_is_kept_to_the_byte_with_each_pages_contents) {
  const GroupId here = group(1);
  std::mt19937_64 random(4711);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live;  // address, bytes
  Model model, at_worst;
  std::uint64_t most = 0, most_ns = 0;
  constexpr std::uint64_t pages = 40, slots = 8, slot = page / slots;
  std::vector<bool> taken(pages * slots);
  for (std::uint64_t now = 1; now <= 20'000; ++now) {
    // Allocates and frees by turns, so that the worst moment is neither at the start nor at the
    // end.
    const bool fills = now / 1500 % 2 == 0;
    if (live.empty() || (fills ? random() % 4 != 0 : random() % 4 == 0)) {
      const std::uint64_t at = random() % taken.size();
      if (taken[at]) continue;
      taken[at] = true;
      const std::uint64_t address = base + at * slot, bytes = 1 + random() % slot;
      slabs.allocated(here, {address}, bytes, now);
      model.add(address, bytes);
      live.push_back({address, bytes});
    } else {
      std::swap(live[random() % live.size()], live.back());
      slabs.freed(here, {live.back().first}, live.back().second, now);
      model.remove(live.back().first);
      taken[(live.back().first - base) / slot] = false;
      live.pop_back();
    }
    if (model.locked() > most) {
      most = model.locked();
      most_ns = now;
      at_worst = model;
    }
  }
  const SeriesView::Worst found = worst();
  EXPECT_TRUE(found.all_counted);
  EXPECT_EQ(found.locked_bytes, most);
  EXPECT_EQ(found.time_ns, most_ns);
  ASSERT_NE(model.locked(), most) << "the worst moment is over";
  const auto held = pages_at_worst(found.version);
  ASSERT_EQ(held.size(), at_worst.pages().size());
  for (const auto& [number, pieces] : at_worst.pages()) {
    const SlabContents& contents = held.at(number * page);
    EXPECT_EQ(contents.count, pieces.size());
    std::uint64_t bytes = 0;
    for (const auto& [address, requested] : pieces) bytes += requested;
    EXPECT_EQ(contents.bytes, bytes);
  }
}

TEST_F(SlabPagesTest, a_free_and_equal_allocation_changes_nothing_and_a_worse_moment_is_copied) {
  const GroupId here = group(1);
  for (std::uint64_t i = 0; i < 4; ++i) slabs.allocated(here, {base + i * MiB / 2}, MiB / 2, 1);
  slabs.freed(here, {base}, MiB / 2, 5);
  slabs.freed(here, {base + MiB}, MiB / 2, 6);
  slabs.freed(here, {base + MiB / 2}, MiB / 2, 7);
  EXPECT_EQ(worst().locked_bytes, 3 * MiB / 2);
  EXPECT_EQ(worst().time_ns, 1u) << "the first piece opened the page";
  slabs.allocated(here, {base + page}, MiB, 8);
  EXPECT_EQ(worst().locked_bytes, 5 * MiB / 2);
  for (std::uint64_t now = 10; now < 20; ++now) {
    slabs.allocated(here, {base + page + MiB}, MiB / 4, now);
    slabs.freed(here, {base + page + MiB}, MiB / 4, now);
  }
  EXPECT_EQ(worst().time_ns, 8u) << "never more than that";
  slabs.allocated(here, {base + MiB}, MiB / 4, 20);
  slabs.allocated(here, {base + 2 * page}, MiB, 21);
  EXPECT_EQ(worst().locked_bytes, 5 * MiB / 2 - MiB / 4 + MiB);
  slabs.freed(here, {base + MiB}, MiB / 4, 22);
  EXPECT_EQ(worst().locked_bytes, 5 * MiB / 2 + MiB) << "known at once";
  EXPECT_EQ(worst().time_ns, 22u);
  // A piece of another size at the same address is another piece.
  slabs.allocated(here, {base + MiB}, MiB / 4, 23);
  slabs.freed(here, {base + MiB}, MiB / 4, 24);
  slabs.allocated(here, {base + MiB}, MiB / 8, 25);
  slabs.freed(here, {base + 2 * page}, MiB, 26);
  const auto pages = pages_at_worst(worst().version);
  EXPECT_EQ(pages.at(base).bytes, MiB / 2);
  EXPECT_EQ(pages.at(base + 2 * page).bytes, MiB);
}

TEST_F(SlabPagesTest, whole_pages_lock_no_bytes_and_their_rounding_is_counted) {
  const GroupId here = group(1);
  slabs.allocated(here, {base}, 3 * MiB, 1);
  slabs.allocated(here, {base + 4 * MiB}, 4 * MiB, 2);
  slabs.allocated(here, {base + 8 * MiB}, MiB + 1, 3);
  EXPECT_EQ(worst().version, 0u) << "nothing was locked";
  slabs.allocated(here, {base + 10 * MiB}, 512, 4);
  EXPECT_EQ(worst().locked_bytes, page - 512);
  EXPECT_EQ(worst().page_rounding_bytes, MiB + MiB - 512);
  slabs.freed(here, {base}, 3 * MiB, 5);
  slabs.allocated(here, {base + 12 * MiB}, 512, 6);
  EXPECT_EQ(worst().page_rounding_bytes, MiB - 512);
}

TEST_F(SlabPagesTest, the_rest_of_a_large_pieces_page_is_rounding_until_small_pieces_come) {
  const GroupId here = group(1);
  slabs.allocated(here, {base}, page - MiB / 2, 1);
  slabs.allocated(here, {base + page}, 512, 2);
  EXPECT_EQ(worst().locked_bytes, page - 512);
  EXPECT_EQ(worst().page_rounding_bytes, MiB / 2);
  slabs.allocated(here, {base + page - MiB / 2}, 512, 3);
  EXPECT_EQ(worst().locked_bytes, page - 512 + MiB / 2 - 512);
  EXPECT_EQ(worst().page_rounding_bytes, 0u);
  EXPECT_EQ(pages_at_worst(worst().version).at(base).count, 2u);
  slabs.freed(here, {base}, page - MiB / 2, 4);
  slabs.allocated(here, {base + 2 * page}, 512, 5);
  EXPECT_EQ(worst().locked_bytes, 3 * (page - 512)) << "the small one keeps its page";
}

TEST_F(SlabPagesTest, half_a_page_is_part_of_a_slab_and_a_larger_piece_has_a_page_alone) {
  const GroupId here = group(1);
  slabs.allocated(here, {base}, MiB, 1);
  EXPECT_EQ(worst().locked_bytes, MiB);
  slabs.allocated(here, {base + page}, MiB + 512, 2);
  slabs.allocated(here, {base + 2 * page}, page - 512, 3);
  slabs.allocated(here, {base + 3 * page}, page - 511, 4);  // a whole page
  slabs.allocated(here, {base + 4 * page}, 512, 5);
  EXPECT_EQ(worst().locked_bytes, MiB + page - 512);
  EXPECT_EQ(worst().page_rounding_bytes, MiB - 512 + 512 + 511);
}

TEST_F(SlabPagesTest, a_piece_that_crosses_into_the_next_page_is_in_no_slab) {
  slabs.allocated(group(1), {base + page - 512}, 1024, 1);
  EXPECT_EQ(worst().version, 0u);
  slabs.allocated(group(1), {base + 8 * page}, 512, 2);
  EXPECT_EQ(worst().page_rounding_bytes, page - 1024);
}

TEST_F(SlabPagesTest, the_end_of_a_context_makes_no_worst_moment) {
  const GroupId here = group(1);
  for (std::uint64_t i = 0; i < 8; ++i) slabs.allocated(here, {base + i * MiB}, MiB, 1);
  EXPECT_EQ(worst().locked_bytes, MiB);
  // Releases one piece of each page first, then the others.
  for (const std::uint64_t first : {0u, 1u})
    for (std::uint64_t i = first; i < 8; i += 2) slabs.released(here, {base + i * MiB}, MiB);
  EXPECT_EQ(worst().locked_bytes, MiB);
  EXPECT_EQ(worst().time_ns, 1u);
  slabs.allocated(here, {base}, MiB / 2, 5);
  EXPECT_EQ(worst().locked_bytes, page - MiB / 2);
}

TEST_F(SlabPagesTest, devices_are_counted_apart_also_where_an_address_changes_hands) {
  const GroupId first = group(1), second = group(1, Kind::device, 1);
  slabs.allocated(first, {base}, MiB, 1);
  slabs.freed(first, {base}, MiB, 2);
  slabs.allocated(second, {base}, MiB / 2, 3);
  EXPECT_EQ(worst(1).locked_bytes, MiB);
  EXPECT_EQ(worst(2).locked_bytes, page - MiB / 2);
  const auto found = reader().slab_page(2, worst(2).version).value();
  EXPECT_EQ(found.device.value, 1);
  EXPECT_EQ(found.contents.bytes, MiB / 2);
  slabs.freed(second, {base}, MiB / 2, 4);
  slabs.allocated(first, {base}, 512, 5);
  EXPECT_EQ(worst(1).locked_bytes, page - 512) << "and goes back";
  const auto before = reader().slab_page(1, worst(1).version).value();
  EXPECT_EQ(before.device.value, 0);
  EXPECT_EQ(before.contents.bytes, 512u);
  EXPECT_EQ(reader().slab_page(2, worst(2).version)->contents.bytes, MiB / 2);
  EXPECT_EQ(reader().rows(RegionId::slab_pages), 3u);
}

// A reader sees the pages of the worst moment at any time, since the process may be killed at any
// time.
TEST_F(SlabPagesTest, the_copy_of_the_worst_moment_is_readable_at_every_moment) {
  const GroupId here = group(1);
  constexpr std::uint64_t rounds = 30'000;
  slabs.allocated(here, {base}, MiB / 2, 1);
  std::atomic<bool> done{false};
  std::uint64_t looks = 0, wrong = 0;
  std::thread watcher([&] {
    const Reader all = reader();
    const std::atomic<std::uint32_t>& newest =
        storage.rows<Series>(RegionId::series)[1].worst_version;
    while (!done.load()) {
      const std::uint32_t version = newest.load();
      const auto page_then = all.slab_page(1, version);
      if (!page_then || newest.load() != version) continue;
      ++looks;
      wrong += page_then->contents.bytes != MiB / 2;
    }
  });
  for (std::uint64_t i = 1; i <= rounds; ++i) {
    slabs.allocated(here, {base + i * page}, 4096, i);  // a new worst moment
    slabs.allocated(here, {base + MiB}, 512, i);
    slabs.freed(here, {base + MiB}, 512, i);
  }
  done.store(true);
  watcher.join();
  EXPECT_GT(looks, 1000u);
  EXPECT_EQ(wrong, 0u);
}

// A page's contents are copied before the page changes, so that a killed process leaves a whole
// copy.
TEST_F(SlabPagesTest, a_page_is_copied_before_it_changes) {
  const GroupId here = group(1);
  slabs.allocated(here, {base}, MiB / 2, 1);
  slabs.allocated(here, {base + page}, MiB / 2, 2);
  const std::uint32_t version = worst().version;
  SlabPage& row = storage.rows<SlabPage>(RegionId::slab_pages)[1];
  ASSERT_EQ(row.address, base);
  // The copy was begun and not finished, so the page has not changed yet.
  row.at_worst_version.store(version | slab_copying);
  row.contents_at_worst.store(0);
  EXPECT_EQ(reader().slab_page(1, version)->contents.bytes, MiB / 2);
  slabs.allocated(here, {base + MiB}, 512, 3);
  EXPECT_EQ(row.at_worst_version.load(), version | slab_copying)
      << "no thread ends the copy, and the change does not wait for one";
  // A copy that was begun for an older worst moment, and never ended, is taken over.
  row.at_worst_version.store((version - 1) | slab_copying);
  slabs.allocated(here, {base + MiB + 512}, 512, 4);
  EXPECT_EQ(row.at_worst_version.load(), version);
  EXPECT_EQ(SlabContents::of(row.contents_at_worst.load()).bytes, MiB / 2 + 512);
  EXPECT_EQ(SlabContents::of(row.contents.load()).bytes, MiB / 2 + 1024);
}

TEST_F(SlabPagesTest, other_kinds_and_addresses_beyond_what_a_process_has_are_left_alone) {
  slabs.allocated(group(1, Kind::stream_ordered), {base}, 512, 1);
  EXPECT_EQ(reader().rows(RegionId::slab_pages), 1u);
  slabs.allocated(group(2), {std::uint64_t{1} << 50}, 512, 1);
  EXPECT_FALSE(worst(2).all_counted) << "said, for the worst moment may be another one";
  slabs.freed(group(2), {std::uint64_t{1} << 50}, 512, 1);
}

// Each thread changes its own pages, and the sum is known at each barrier.
TEST_F(SlabPagesTest, the_worst_moment_misses_no_more_than_each_thread_may_keep_uncounted) {
  constexpr std::uint64_t threads = 8, pages = 200, slot = 64 << 10, slots = page / slot;
  std::vector<GroupId> sites;
  for (std::uint32_t i = 0; i < threads; ++i) sites.push_back(group(i + 1));
  std::vector<std::thread> workers;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      const std::uint64_t own = base + thread * pages * page;
      for (std::uint64_t i = 0; i < pages * slots; ++i)
        slabs.allocated(sites[thread], {own + i * slot}, slot, 1);
      // Frees all but one piece of each page, so that most bytes are locked at the end.
      for (std::uint64_t i = 0; i < pages * slots; ++i)
        if (i % slots != 3) slabs.freed(sites[thread], {own + i * slot}, slot, 2);
    });
  }
  for (std::thread& worker : workers) worker.join();
  const std::uint64_t locked = threads * pages * (page - slot);
  const std::uint64_t kept = threads * (std::max<std::uint64_t>(16 << 10, locked / 4096) + slot);
  EXPECT_LE(worst().locked_bytes, locked + kept);
  EXPECT_GE(worst().locked_bytes, locked - kept);
  EXPECT_EQ(pages_at_worst(worst().version).size(), threads * pages);
}

TEST_F(SlabPagesTest, the_largest_holders_are_copied_with_their_share_of_each_page) {
  const GroupId many = group(1), few = group(2);
  // There are twenty pages with one piece of `few` each. Ten of them also have three pieces of
  // `many`.
  for (std::uint64_t i = 0; i < 20; ++i) {
    for (std::uint64_t piece = 1; i < 10 && piece < 4; ++piece)
      add(many, base + i * page + piece * 4096, 4096);
    add(few, base + i * page, 4096);
  }
  const SeriesView::Worst found = worst();
  EXPECT_EQ(found.holders_ns, late_ns);
  // The copy is of the moment at which the locked bytes had grown by an eighth; all shares are
  // known.
  const WorstHolderView &most = found.holders[0], &next = found.holders[1];
  EXPECT_EQ(most.group, few);
  EXPECT_EQ(next.group, many);
  EXPECT_EQ(next.count, 30u);
  EXPECT_EQ(next.bytes, 30u * 4096);
  EXPECT_EQ(next.locked_bytes, 30 * ((page - 4 * 4096) / 4));
  EXPECT_EQ(most.locked_bytes + next.locked_bytes, found.holders_locked_bytes);
  EXPECT_GE(found.holders_locked_bytes, found.locked_bytes / 9 * 8 - page);
  EXPECT_EQ(found.holders[2].group.value, 0u);
  EXPECT_GE(found.pieces_seen, 36u);
  EXPECT_LE(found.pieces_seen, 40u)
      << "the pieces of ten pages; all others are alone in their pages";
}

TEST_F(SlabPagesTest, nothing_of_a_copy_that_was_cut_short_is_read) {
  const GroupId here = group(1);
  for (std::uint64_t i = 0; i < 20; ++i)
    for (std::uint64_t piece = 0; piece < 2; ++piece)
      add(here, base + i * page + piece * 4096, 4096);
  ASSERT_GT(worst().pieces_seen, 0u);
  // So the process leaves the row if it is killed while it copies the holders.
  storage.rows<Series>(RegionId::series)[1].holders_version.fetch_add(1);
  const SeriesView::Worst found = worst();
  EXPECT_EQ(found.holders[0].group.value, 0u);
  EXPECT_EQ(found.holders_ns, 0u);
  EXPECT_EQ(found.holders_locked_bytes, 0u);
  EXPECT_EQ(found.pieces_seen, 0u);
  EXPECT_GT(found.locked_bytes, 0u);
}

TEST_F(SlabPagesTest, the_devices_reading_at_the_worst_moment_is_kept_with_the_holders) {
  const GroupId here = group(1);
  const auto row = storage.allocate(RegionId::devices, 1);
  Device& device = storage.rows<Device>(RegionId::devices)[row];
  device.ordinal = 0;
  const auto read = [&](std::uint64_t time_ns, std::uint64_t free_bytes) {
    device.at.store(1);
    device.time_ns.store(time_ns);
    device.free_bytes.store(free_bytes);
    device.memory_pool_idle_bytes.store(unknown_value);
    device.state.store(1);
  };
  const auto open_slabs = [&](std::uint64_t from, std::uint64_t count) {
    for (std::uint64_t i = from; i < from + count; ++i) add(here, base + i * page, 512);
  };
  open_slabs(0, 20);
  EXPECT_EQ(worst().read_ns, 0u) << "the device was not read yet";
  read(40, 1 << 30);
  open_slabs(20, 20);
  EXPECT_EQ(worst().read_ns, 40u);
  EXPECT_EQ(worst().read_free_bytes, 1u << 30);
  EXPECT_FALSE(worst().read_memory_pool_idle_bytes);
}

}  // namespace
}  // namespace cuwarden::ledger
