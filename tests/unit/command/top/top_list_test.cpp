// `top`: lists of the live view are sorted, filtered and folded.
#include <gtest/gtest.h>

#include "tests/unit/command/top/live_data_fixture.hpp"
#include "tools/cuwarden/top/live/process_state.hpp"

namespace cuwarden {
namespace {

using Texts = std::vector<std::string>;
using Live = test::LiveViewUnderTest;
using test::mebibyte;

TEST(TopLists, processes_are_sorted_by_live_bytes_at_first) {
  EXPECT_EQ(Live().programs(), (Texts{"large", "middle", "small"}));
}

TEST(TopLists, each_column_of_processes_sorts) {
  Live live;
  live.data.processes[0].row.peak_bytes = 99 * mebibyte;
  live.data.processes[2].row.growth_bytes_per_minute = 5;
  live.data.processes[0].row.growth_bytes_per_minute = -5;
  live.data.processes[0].row.allocations_per_minute = 1;
  live.data.processes[2].row.running_ns = 100'000'000'000;
  const auto first_by = [&](LiveOrder order) {
    live.state.processes.order = order;
    return live.programs().front();
  };
  EXPECT_EQ(first_by(LiveOrder::peak), "small");
  EXPECT_EQ(first_by(LiveOrder::growth), "middle");
  EXPECT_EQ(live.programs().back(), "small");
  EXPECT_EQ(first_by(LiveOrder::rate), "small");
  EXPECT_EQ(first_by(LiveOrder::age), "middle");
  EXPECT_EQ(first_by(LiveOrder::pid), "small");
  EXPECT_EQ(first_by(LiveOrder::text), "large");
}

TEST(TopLists, pinned_memory_orders_only_processes_with_as_much_device_memory) {
  Live live;
  for (auto& process : live.data.processes) {
    process.row.device_bytes = mebibyte;
    process.row.host_bytes = 0;
  }
  live.data.processes[0].row.host_bytes = 2 * mebibyte;
  live.data.processes[2].row.host_bytes = mebibyte;
  EXPECT_EQ(live.programs(), (Texts{"small", "middle", "large"}));
  live.data.processes[1].row.device_bytes = 2 * mebibyte;
  EXPECT_EQ(live.programs(), (Texts{"large", "small", "middle"}));
}

TEST(TopLists, ended_processes_come_last_in_any_order) {
  Live live;
  live.data.processes[1].row.ended = true;
  EXPECT_EQ(live.programs(), (Texts{"middle", "small", "large"}));
  live.state.processes.reversed = true;
  EXPECT_EQ(live.programs(), (Texts{"small", "middle", "large"}));
}

TEST(TopLists, each_column_of_stacks_sorts) {
  Live live;
  live.data.stacks[2].row.growth_bytes_per_minute = 5;
  live.data.stacks[1].row.allocations_per_minute = 600;
  const auto first_by = [&](LiveOrder order) {
    live.state.stacks.order = order;
    return live.locations().front();
  };
  EXPECT_EQ(first_by(LiveOrder::bytes), "a.cpp:1 in load");
  EXPECT_EQ(first_by(LiveOrder::count), "c.cpp:4 in Cache::insert");
  EXPECT_EQ(first_by(LiveOrder::growth), "a.cpp:3 in keep");
  EXPECT_EQ(first_by(LiveOrder::rate), "b.cpp:2 in step");
  EXPECT_EQ(first_by(LiveOrder::allocations), "c.cpp:4 in Cache::insert");
  EXPECT_EQ(first_by(LiveOrder::text), "a.cpp:1 in load");
  live.state.stacks.reversed = true;
  EXPECT_EQ(live.locations().front(), "c.cpp:4 in Cache::insert");
}

TEST(TopLists, by_growth_stacks_that_keep_growing_come_first) {
  Live live;
  live.state.stacks.order = LiveOrder::growth;
  live.data.stacks[0].row.growth_bytes_per_minute = 1'000'000;
  live.data.stacks[3].row.keeps_growing = true;
  EXPECT_EQ(live.locations().front(), "c.cpp:4 in Cache::insert");
}

TEST(TopLists, filters_find_texts_of_all_columns_in_capitals_or_not) {
  Live live;
  const auto left = [&](const std::string& filter) {
    live.state.stacks.filter = filter;
    return live.locations().size();
  };
  EXPECT_EQ(left(""), 4u);
  EXPECT_EQ(left("A.CPP"), 2u);
  EXPECT_EQ(left("cache::INSERT"), 1u);
  EXPECT_EQ(left("libb"), 1u);
  EXPECT_EQ(left("mallochost"), 1u);
  EXPECT_EQ(left("device memory (GPU 0)"), 3u);
  EXPECT_EQ(left("nowhere"), 0u);
  live.state.processes.filter = "13";
  EXPECT_EQ(live.programs(), Texts{"middle"});
  live.data.processes[0].row.failures = 2;
  live.state.processes.filter = "refused";
  EXPECT_EQ(live.programs(), Texts{"small"});
}

TEST(TopLists, a_fold_by_module_has_the_sums_of_its_stacks) {
  Live live;
  live.state.fold = LiveFold::module;
  live.data.stacks[2].row.kind = "managed";
  const ListedStacks listed = listed_stacks(live.state, live.data);
  ASSERT_EQ(listed.lines.size(), 3u);
  const LiveStack& line = *listed.lines[0];
  EXPECT_EQ(line.location, "liba.so");
  EXPECT_EQ(line.stacks, 2u);
  EXPECT_EQ(line.group, 0u);
  EXPECT_EQ(line.row.live_bytes, 6 * mebibyte);
  EXPECT_EQ(line.row.live_count, 4u);
  EXPECT_EQ(line.row.allocations, 40u);
  EXPECT_EQ(line.row.allocations_per_minute, 120);
  EXPECT_EQ(line.row.kind, "");  // device and managed memory
  EXPECT_EQ(line.row.api, "cudaMalloc");
  EXPECT_EQ(listed.lines[2]->location, "libc_cache.so");
  EXPECT_EQ(listed.lines[2]->row.kind, "pinned");
}

TEST(TopLists, a_fold_has_the_growth_per_step_of_its_stacks_and_their_first_step) {
  Live live;
  live.state.fold = LiveFold::kind;
  for (auto& stack : live.data.stacks) stack.row.kind = "device";
  live.data.stacks[0].row.keeps_growing_bytes_per_step = 7;
  live.data.stacks[0].row.keeps_growing_since_step = 5;
  live.data.stacks[1].row.keeps_growing_bytes_per_step = 2;
  live.data.stacks[1].row.keeps_growing_since_step = 3;
  for (auto& stack : live.data.stacks) stack.row.device = 0;
  const ListedStacks listed = listed_stacks(live.state, live.data);
  ASSERT_EQ(listed.lines.size(), 1u);
  EXPECT_EQ(listed.lines[0]->row.keeps_growing_bytes_per_step, 9u);
  EXPECT_EQ(listed.lines[0]->row.keeps_growing_since_step, 3u);
}

TEST(TopLists, folds_by_call_and_by_kind_divide_otherwise) {
  Live live;
  live.state.fold = LiveFold::call;
  EXPECT_EQ(live.locations(), (Texts{"cudaMalloc", "cudaMallocHost"}));
  live.state.fold = LiveFold::kind;
  EXPECT_EQ(live.locations(), (Texts{"device memory (GPU 0)", "pinned host memory"}));
}

TEST(TopLists, a_state_says_who_waits_and_what_was_refused_and_rescued) {
  LiveProcess process = test::live_process(1, "p", 0);
  EXPECT_EQ(state_text(process), "");
  process.row.failures = 2;
  process.row.rescues = 3;
  EXPECT_EQ(state_text(process), "refused 2, rescued 3");
  WaitingRow waiting;
  waiting.rung = "trim";
  waiting.duration_ns = 1'000'000'000;
  process.waiting.push_back(waiting);
  waiting.rung = "wait";
  waiting.duration_ns = 12'000'000'000;
  process.waiting.push_back(waiting);
  EXPECT_EQ(state_text(process), "waits 12.0 s (wait), refused 2, rescued 3");
  process.row.ended = true;
  EXPECT_EQ(state_text(process), "ended");
}

TEST(TopLists, names_of_all_stacks_are_needed_by_filters_folds_and_the_order_of_locations) {
  LiveState state;
  EXPECT_FALSE(needs_all_names(state));
  state.fold = LiveFold::kind;
  EXPECT_FALSE(needs_all_names(state));
  state.fold = LiveFold::module;
  EXPECT_TRUE(needs_all_names(state));
  state.fold = LiveFold::stack;
  state.stacks.filter = "a";
  EXPECT_TRUE(needs_all_names(state));
  state.stacks.filter.clear();
  state.stacks.order = LiveOrder::text;
  EXPECT_TRUE(needs_all_names(state));
}

}  // namespace
}  // namespace cuwarden
