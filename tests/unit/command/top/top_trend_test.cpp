// `top`: live bytes of the last minutes, and sparklines of them.
#include <gtest/gtest.h>

#include "tools/cuwarden/top/live/trend.hpp"

namespace cuwarden {
namespace {

using Bytes = std::optional<std::uint64_t>;
constexpr std::uint64_t a_second = 1'000'000'000;

// Returns a trend whose first interval has the number 0.
Trend trend_of(std::vector<Bytes> bytes) { return {0, std::move(bytes)}; }

TEST(Trends, an_interval_has_the_highest_bytes_of_its_moments) {
  History history;
  history.add(1 * a_second, 5);
  history.add(4 * a_second, 7);
  history.add(5 * a_second, 3);
  const Trend trend = history.trend(9 * a_second, {});
  EXPECT_EQ(trend.first, 0u);
  EXPECT_EQ(trend.bytes, (std::vector<Bytes>{7, 3}));
}

TEST(Trends, the_time_before_the_first_moment_is_that_of_the_ledger) {
  ledger::SeriesView series;
  series.buckets_used = 2;
  series.buckets[0] = {0, 5 * a_second, 100, 50};
  series.buckets[1] = {5 * a_second, 5 * a_second, 40, 30};
  History history;
  history.add(12 * a_second, 10);
  EXPECT_EQ(history.trend(14 * a_second, series).bytes, (std::vector<Bytes>{100, 40, 10}));
}

TEST(Trends, a_wide_bucket_of_the_ledger_counts_in_each_interval_that_it_covers) {
  ledger::SeriesView series;
  series.buckets_used = 1;
  series.buckets[0] = {5 * a_second, 10 * a_second, 8, 8};
  EXPECT_EQ(History().trend(24 * a_second, series).bytes,
            (std::vector<Bytes>{Bytes(), 8, 8, Bytes(), Bytes()}));
}

TEST(Trends, there_are_intervals_of_five_minutes) {
  History history;
  for (std::uint64_t now = 0; now < 1000; ++now) history.add(now * a_second, now);
  const Trend trend = history.trend(999 * a_second, {});
  EXPECT_EQ(trend.bytes.size(), 60u);
  EXPECT_EQ(trend.first, 140u);
  EXPECT_EQ(trend.bytes.front(), 704u);
  EXPECT_EQ(trend.bytes.back(), 999u);
}

TEST(Trends, a_sum_is_unknown_where_all_are) {
  Trend sum;
  add_trend(trend_of({Bytes(), 1, Bytes()}), sum);
  add_trend(trend_of({Bytes(), 2, 3}), sum);
  EXPECT_EQ(sum.bytes, (std::vector<Bytes>{Bytes(), 3, 3}));
}

TEST(Sparklines, bars_rise_from_the_lowest_to_the_highest_value) {
  const Trend trend = trend_of({0, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(sparkline(trend, trend_intervals, false), "▁▂▃▄▅▆▇██");
  EXPECT_EQ(sparkline(trend, trend_intervals, true), "_.:-=+*##");
}

TEST(Sparklines, unknown_intervals_are_spaces_and_zeros_lie_at_the_bottom) {
  EXPECT_EQ(sparkline(trend_of({Bytes(), 0, 8}), 60, true), " _#");
  EXPECT_EQ(sparkline(trend_of({0, 0}), 60, true), "__");
  EXPECT_EQ(sparkline({}, 60, true), "");
  EXPECT_EQ(sparkline(trend_of({1}), 0, true), "");
}

TEST(Sparklines, a_narrow_line_has_the_highest_of_several_intervals_in_a_bar) {
  // With 20 bars, each is three intervals.
  EXPECT_EQ(sparkline(trend_of({8, 0, 0, 0, 4, 0, 0}), 20, true), "#=_");
}

TEST(Sparklines, bars_keep_their_intervals_while_time_goes_on) {
  Trend trend = trend_of(std::vector<Bytes>(60, 0));
  trend.bytes[7] = 8;
  EXPECT_EQ(sparkline(trend, 20, true), "__#_________________");
  trend.first = 1;  // one interval later, the value is one to the left, in the same bar
  trend.bytes[7] = 0;
  trend.bytes[6] = 8;
  EXPECT_EQ(sparkline(trend, 20, true), "_#__________________");
  trend.first = 2;
  trend.bytes[6] = 0;
  trend.bytes[5] = 8;
  EXPECT_EQ(sparkline(trend, 20, true), "_#__________________");
}

TEST(Sparklines, the_largest_values_do_not_overflow) {
  const std::uint64_t most = ~std::uint64_t{0};
  EXPECT_EQ(sparkline(trend_of({most, most / 2}), 60, true), "#=");
}

}  // namespace
}  // namespace cuwarden
