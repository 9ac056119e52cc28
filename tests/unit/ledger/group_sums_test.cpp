// Sums over the groups of a running process: they add up even if its series disagree.
#include "runtime_hooks/ledger/read/group_sums.hpp"

#include <gtest/gtest.h>

namespace cuwarden::ledger {
namespace {

GroupView group(Kind kind, std::int32_t device, std::uint64_t count, std::uint64_t bytes) {
  GroupView view;
  view.kind = kind;
  view.device = {device};
  view.live_count = count;
  view.live_bytes = bytes;
  view.allocations = count + 3;
  view.allocated_bytes = bytes + 50;
  view.frees = 3;
  return view;
}

SeriesView series(Kind kind, std::int32_t device) {
  SeriesView view;
  view.kind = kind;
  view.device = {device};
  view.live_count = view.live_bytes = 7;
  view.peak_count = 4;
  view.peak_bytes = 400;
  return view;
}

TEST(GroupSums, a_series_becomes_the_sum_of_its_groups_and_no_others) {
  GroupSums totals;
  totals.add(group(Kind::device, 0, 1, 100));
  totals.add(group(Kind::device, 0, 2, 200));
  totals.add(group(Kind::device, 1, 1, 5000));
  totals.add(group(Kind::vmm, 0, 1, 6000));
  SeriesView view = series(Kind::device, 0);
  totals.put_into(view);
  EXPECT_EQ(view.live_count, 3u);
  EXPECT_EQ(view.live_bytes, 300u);
  EXPECT_EQ(view.allocations, 9u);
  EXPECT_EQ(view.allocated_bytes, 400u);
  EXPECT_EQ(view.frees, 6u);
  EXPECT_EQ(view.peak_bytes, 400u);
}

TEST(GroupSums, a_peak_is_no_lower_than_the_live_bytes_now) {
  GroupSums totals;
  totals.add(group(Kind::device, 0, 9, 900));
  SeriesView view = series(Kind::device, 0);
  totals.put_into(view);
  EXPECT_EQ(view.peak_count, 9u);
  EXPECT_EQ(view.peak_bytes, 900u);
}

TEST(GroupSums, bytes_of_an_uncounted_allocation_are_not_live) {
  GroupSums totals;
  totals.add(group(Kind::device, 0, 0, 100));
  SeriesView view = series(Kind::device, 0);
  totals.put_into(view);
  EXPECT_EQ(view.live_count, 0u);
  EXPECT_EQ(view.live_bytes, 0u);
}

TEST(GroupSums, the_hosts_own_memory_is_left_alone) {
  SeriesView view = series(Kind::device, 0);
  view.host_rss = true;
  GroupSums().put_into(view);
  EXPECT_EQ(view.live_bytes, 7u);
}

}  // namespace
}  // namespace cuwarden::ledger
