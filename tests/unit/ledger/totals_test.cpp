// Peaks and the timeline. The test sets the clock.
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "tests/unit/ledger/ledger_parts.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t ms = 1'000'000;

class TotalsTest : public LedgerParts {
 protected:
  SeriesView series(std::uint64_t row = 1) {
    SeriesView series = reader().series(row).value();
    GroupSums(reader()).put_into(series);
    return series;
  }
};

TEST_F(TotalsTest, series_are_kept_by_kind_and_device) {
  totals.allocated(group(1), 10, ms);
  totals.allocated(group(2), 20, ms);
  totals.allocated(group(1, Kind::pinned, -1), 30, ms);
  totals.allocated(group(1, Kind::device, 7), 40, ms);
  totals.allocated(group(1, Kind::device, 1000), 50, ms);
  EXPECT_EQ(series(1).live_bytes, 30u);
  EXPECT_EQ(series(1).live_count, 2u);
  EXPECT_EQ(series(2).kind, Kind::pinned);
  EXPECT_EQ(series(2).device, no_device);
  EXPECT_EQ(series(3).device.value, 7);
  EXPECT_EQ(series(4).live_bytes, 50u);
  EXPECT_FALSE(reader().series(5));
}

TEST_F(TotalsTest, the_peak_names_the_groups_that_held_it) {
  totals.allocated(group(1), 1000, 1 * ms);
  totals.allocated(group(2), 500, 2 * ms);
  totals.freed(group(1), 1000, 3 * ms, 0);
  totals.allocated(group(3), 800, 4 * ms);
  const SeriesView all = series();
  EXPECT_EQ(all.peak_bytes, 1500u);
  EXPECT_EQ(all.peak_count, 2u);
  EXPECT_EQ(all.peak_ns, 2 * ms);
  EXPECT_EQ(reader().group(1)->at_peak_bytes, 1000u);
  EXPECT_EQ(reader().group(1)->at_peak_count, 1u);
  EXPECT_EQ(reader().group(2)->at_peak_bytes, 500u);
  EXPECT_EQ(reader().group(3)->at_peak_bytes, 0u);
}

TEST_F(TotalsTest, the_copied_peak_is_within_one_percent) {
  for (std::uint64_t i = 0; i < 20'000; ++i)
    totals.allocated(group(static_cast<std::uint32_t>(i % 3 + 1)), 100 + i % 7, i);
  std::uint64_t shown = 0;
  for (std::uint64_t i = 1; i <= 3; ++i) shown += reader().group(i)->at_peak_bytes;
  const double peak = static_cast<double>(series().peak_bytes);
  EXPECT_LE(static_cast<double>(shown), peak);
  EXPECT_GE(static_cast<double>(shown), peak * 0.99);
}

TEST_F(TotalsTest, quiet_buckets_show_the_bytes_that_were_live_before) {
  totals.allocated(group(1), 100, 0);
  totals.freed(group(1), 100, 5 * ms, 0);
  totals.allocated(group(1), 30, 9 * ms);
  const SeriesView all = series();
  ASSERT_EQ(all.buckets_used, 10u);
  EXPECT_EQ(all.buckets[3].max_bytes, 100u);
  EXPECT_EQ(all.buckets[3].last_bytes, 100u);
  EXPECT_EQ(all.buckets[5].max_bytes, 100u) << "live until it was freed in this bucket";
  EXPECT_EQ(all.buckets[5].last_bytes, 0u);
  EXPECT_EQ(all.buckets[7].max_bytes, 0u);
  EXPECT_EQ(all.buckets[9].last_bytes, 30u);
  EXPECT_EQ(all.buckets[9].time_ns, 9 * ms);
}

TEST_F(TotalsTest, a_long_run_folds_its_buckets_and_loses_no_maximum) {
  totals.allocated(group(1), 100, 10 * ms);
  totals.allocated(group(1), 900, 20 * ms);
  totals.freed(group(1), 900, 21 * ms, 0);
  totals.allocated(group(1), 5, 3'600'000 * ms);  // an hour later
  const SeriesView all = series();
  EXPECT_LE(all.buckets_used, bucket_count);
  EXPECT_GT(all.buckets_used, bucket_count / 2);
  EXPECT_EQ(all.buckets[0].max_bytes, 1000u);
  EXPECT_EQ(all.buckets[0].last_bytes, 100u);
  EXPECT_EQ(all.buckets[1].max_bytes, 100u);
  const BucketView& last = all.buckets[all.buckets_used - 1];
  EXPECT_EQ(last.last_bytes, 105u);
  EXPECT_LE(last.time_ns, 3'600'000 * ms);
  EXPECT_GT(last.time_ns + last.width_ns, 3'600'000 * ms);
}

TEST_F(TotalsTest, folding_agrees_with_a_recount) {
  // One change happens in each millisecond. Each bucket, of any width, must show the highest value
  // within it.
  std::vector<std::uint64_t> live_after;
  std::uint64_t live = 0, seed = 1;
  for (std::uint64_t t = 0; t < 5000; ++t) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    if (live > 0 && (seed >> 33) % 2 == 0) {
      totals.freed(group(1), 10, t * ms, 0);
      live -= 10;
    } else {
      totals.allocated(group(1), 10, t * ms);
      live += 10;
    }
    live_after.push_back(live);
  }
  const SeriesView all = series();
  const std::uint64_t width = all.buckets[0].width_ns / ms;
  EXPECT_EQ(width, 32u);
  for (std::size_t b = 0; b < all.buckets_used; ++b) {
    std::uint64_t highest = b == 0 ? 0 : live_after[b * width - 1];
    std::uint64_t last = 0;
    for (std::uint64_t t = b * width; t < (b + 1) * width && t < live_after.size(); ++t) {
      highest = std::max(highest, live_after[t]);
      last = live_after[t];
    }
    EXPECT_EQ(all.buckets[b].max_bytes, highest) << b;
    EXPECT_EQ(all.buckets[b].last_bytes, last) << b;
  }
}

TEST_F(TotalsTest, host_rss_is_a_series_of_its_own) {
  totals.sample_host_rss(5000, 1 * ms);
  totals.sample_host_rss(7000, 2 * ms);
  totals.sample_host_rss(6000, 3 * ms);
  const SeriesView rss = series();
  EXPECT_TRUE(rss.host_rss);
  EXPECT_EQ(rss.peak_bytes, 7000u);
  EXPECT_EQ(rss.buckets[3].last_bytes, 6000u);
}

}  // namespace
}  // namespace cuwarden::ledger
