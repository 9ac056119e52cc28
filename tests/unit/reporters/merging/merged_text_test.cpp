// One view over many processes: the first out of memory, idle devices, common leaks.
#include "reporters/merging/merged_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/reporters/merging/job_fixture.hpp"
#include "tests/unit/reporters/text/has.hpp"

namespace cuwarden {
namespace {

using test::mib;
using test::rank;
using test::refuse;
using test::second_ns;

std::string text_of(const std::vector<model::Report>& reports, std::size_t top = 10) {
  return merged_text(test::merged(reports), top, Style(false));
}

using test::has;

TEST(MergedTexts, name_the_rank_that_ran_out_of_memory_first_by_wall_clock) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8),
                                      rank(2, "a", "GPU-2", 8)};
  refuse(ranks[0], 5 * second_ns);
  ranks[1].process.start = "2026-11-26T04:28:14.000000000Z";
  refuse(ranks[1], 6 * second_ns);
  refuse(ranks[2], 1 * second_ns, "rescued");
  test::hold(ranks[1], 4711, std::nullopt);
  test::hold(ranks[1], 100, 3 * mib);
  ranks[1].accounts = {{0, 1, "live_device", 2 * mib}, {0, 1, "context", 5 * mib}};
  const std::string text = text_of(ranks);
  EXPECT_TRUE(text.starts_with("FIRST OUT OF MEMORY: rank 1 at ")) << text;
  EXPECT_TRUE(has(text, ", cudaMalloc of 64.0 MiB failed: device_full_own\n")) << text;
  EXPECT_TRUE(has(text, "  rank 0 followed within 1.0 s\n")) << text;
  EXPECT_TRUE(has(text,
                  "  GPU-1 was held by: rank 1 itself 2.0 MiB, rank 0 3.0 MiB, pid 4711 "
                  "unknown\n"))
      << text;
  EXPECT_FALSE(has(text, "full at")) << "the holders are named once";
}

// Returns the line about the processes that were refused after the process of rank 50. `ranks`:
// ranks of these processes; null: a process without one.
std::string line_about_followers(const std::vector<model::Figure>& ranks) {
  std::vector<model::Report> reports = {rank(50, "a", "GPU-1", 8)};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    reports.push_back(rank(100 + i, "a", "GPU-1", 8));
    reports.back().job.rank = ranks[i];
  }
  for (std::size_t i = 0; i < reports.size(); ++i) refuse(reports[i], (i + 1) * second_ns);
  const std::string text = text_of(reports), line = text.substr(text.find('\n') + 1);
  return line.substr(0, line.find('\n'));
}

TEST(MergedTexts, name_the_ranks_that_ran_out_of_memory_later) {
  EXPECT_EQ(line_about_followers({3}), "  rank 3 followed within 1.0 s");
  EXPECT_EQ(line_about_followers({4, 3, 0, 1, 6, 5}), "  ranks 0, 1, 3 to 6 followed within 6.0 s");
  EXPECT_EQ(line_about_followers({0, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 19, 20}),
            "  ranks 0 to 2, 4, 6, 8, 10, 12, 14, 16, 3 more followed within 13.0 s");
}

TEST(MergedTexts, count_processes_without_a_rank_of_their_own_that_ran_out_of_memory_later) {
  EXPECT_EQ(line_about_followers({std::nullopt}), "  1 other process followed within 1.0 s");
  EXPECT_EQ(line_about_followers({std::nullopt, 7, std::nullopt, 8}),
            "  ranks 7, 8 and 2 other processes followed within 4.0 s");
  EXPECT_EQ(line_about_followers({7, 7, 50}),
            "  rank 7 and 2 other processes followed within 3.0 s");
}

TEST(MergedTexts, name_the_holders_of_each_other_device_that_was_full) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-2", 8),
                                      rank(2, "a", "GPU-2", 8)};
  refuse(ranks[0], second_ns);
  refuse(ranks[2], 2 * second_ns);
  test::hold(ranks[2], 101, 3 * mib);
  const std::string text = text_of(ranks);
  EXPECT_TRUE(has(text, ", held by: rank 2 itself unknown, rank 1 3.0 MiB\n")) << text;
}

TEST(MergedTexts, say_that_clocks_of_several_hosts_are_compared) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "b", "GPU-2", 8)};
  for (model::Report& report : ranks) refuse(report, second_ns);
  const std::string text = text_of(ranks);
  EXPECT_TRUE(has(text, "rank 0 on a at ")) << text;
  EXPECT_TRUE(has(text, "if the clocks of the hosts agree")) << text;
}

TEST(MergedTexts, say_of_unknown_sums_that_they_are) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8)};
  ranks[0].totals[0].live_bytes = ranks[0].totals[0].peak_bytes = std::nullopt;
  const std::string text = text_of(ranks);
  EXPECT_TRUE(has(text, "; peak unknown on GPU-1\n")) << text;
  EXPECT_TRUE(has(text, ": 1 process, unknown live at the end, peaks of unknown in all\n")) << text;
}

TEST(MergedTexts, begin_with_the_processes_if_no_request_failed) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8)};
  refuse(ranks[0], 1, "recovered_by_caller");
  EXPECT_TRUE(text_of(ranks).starts_with("0.json: app (pid 100 on a, rank 0) exited: "));
}

TEST(MergedTexts, have_a_line_for_each_process_with_its_peak_and_verdicts) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 4 * mib)};
  refuse(ranks[0], 1, "rescued");
  EXPECT_TRUE(has(text_of(ranks),
                  "exited: 4.0 MiB in 1 allocation leaked; peak 8.0 MiB on GPU-1; 1 request was "
                  "refused but did not fail: device_full_own\n"));
  refuse(ranks[0], 2);
  EXPECT_TRUE(has(text_of(ranks), "; 2 requests were refused: device_full_own\n"));
}

TEST(MergedTexts, say_that_memory_of_a_killed_process_was_still_allocated) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 4 * mib)};
  for (const char* const reason : {"signal", "abort", "running"}) {
    ranks[0].process.end_reason = reason;
    EXPECT_TRUE(has(text_of(ranks), ": 4.0 MiB in 1 allocation still allocated; peak"))
        << text_of(ranks);
  }
}

TEST(MergedTexts, name_the_report_to_read_first) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 2 * mib),
                                      rank(1, "a", "GPU-2", 4 * mib)};
  EXPECT_TRUE(has(text_of(ranks),
                  "\nTo do: begin with `cuwarden report` of 1.json, where most memory was not "
                  "freed\n"))
      << text_of(ranks);
  refuse(ranks[0], 1);
  EXPECT_TRUE(has(text_of(ranks),
                  "\nTo do: begin with `cuwarden report` of 0.json, which names the cause, the "
                  "holders and the remedy\n"))
      << text_of(ranks);
  ranks = {rank(0, "a", "GPU-1", 0)};
  ranks[0].leaks = {0, 0, 0, 0};
  EXPECT_FALSE(has(text_of(ranks), "To do")) << text_of(ranks);
}

TEST(MergedTexts, name_devices_that_are_idle_while_one_is_shared) {
  EXPECT_TRUE(text_of({rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8), rank(2, "b", "GPU-2", 8),
                       rank(3, "b", "GPU-3", 8)})
                  .starts_with("2 processes use GPU-1, 3 visible GPUs of a are idle: check how "
                               "ranks are bound to GPUs, and that each chooses by its local rank\n"
                               "\n"));
}

TEST(MergedTexts, do_not_judge_hosts_whose_ranks_see_different_devices) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8)};
  ranks[1].job.visible_devices = "1";
  EXPECT_FALSE(has(text_of(ranks), "idle"));
  for (model::Report& report : ranks) report.job.visible_devices = std::nullopt;
  EXPECT_FALSE(has(text_of(ranks), "idle"));
}

TEST(MergedTexts, show_leaks_of_several_processes_and_the_one_that_stands_out) {
  const std::string text =
      text_of({rank(0, "a", "GPU-1", 4 * mib), rank(1, "a", "GPU-2", 4 * mib),
               rank(2, "a", "GPU-3", 5 * mib), rank(5, "a", "GPU-4", 12 * mib)});
  EXPECT_TRUE(has(text,
                  " 1. 25.0 MiB in 4 processes (least 4.0 MiB, median 5.0 MiB, most 12.0 "
                  "MiB; rank 5 holds 2× the median) · device memory · cudaMalloc\n"
                  "       src/cache.cpp:41  Cache::insert(Key)\n"))
      << text;
  EXPECT_TRUE(has(text_of({rank(0, "a", "GPU-1", 4 * mib), rank(1, "a", "GPU-2", 4 * mib)}),
                  "in 2 processes (4.0 MiB each)"));
  EXPECT_FALSE(has(text_of({rank(0, "a", "GPU-1", 8)}), "SEVERAL PROCESSES"));
}

TEST(MergedTexts, name_the_steps_whose_memory_was_not_freed_and_their_processes) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 4 * mib),
                                      rank(1, "a", "GPU-2", 8 * mib),
                                      rank(2, "a", "GPU-3", 1 * mib)};
  ranks[0].leak_groups[0].named_steps = {{"test_a", 1, 4 * mib}};
  ranks[1].leak_groups[0].named_steps = {{"test_b", 3, 5 * mib}, {"test_a", 1, 3 * mib}};
  ranks[1].leak_groups[0].count = 4;
  ranks[1].leak_groups.push_back(ranks[1].leak_groups[0]);
  ranks[1].leak_groups[1].fingerprint = "00000000000000cd";
  ranks[1].leak_groups[1].named_steps = {{"test_b", 1, 8 * mib}};
  const std::string text = text_of(ranks);
  EXPECT_TRUE(has(text,
                  "LIVE MEMORY BY NAMED STEP\n"
                  " 1. test_b in rank 1: 13.0 MiB in 4 allocations\n"
                  "       at cache.cpp:41 in Cache::insert(Key), and in 1 more leak\n"
                  " 2. test_a in rank 0, rank 1: 7.0 MiB in 2 allocations\n"
                  "       at cache.cpp:41 in Cache::insert(Key)\n"))
      << text;
  EXPECT_TRUE(has(text,
                  "       made in test_a (7.0 MiB in 2 allocations), test_b (5.0 MiB in 3 "
                  "allocations); 1 allocation outside of named steps\n"))
      << text;
  EXPECT_TRUE(has(text_of(ranks, 1), "  … 1 more; --top 0 shows all\n"));
  EXPECT_FALSE(has(text_of({rank(0, "a", "GPU-1", 8)}), "BY NAMED STEP"));
}

TEST(MergedTexts, say_that_figures_of_a_step_are_unknown) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 4 * mib),
                                      rank(1, "a", "GPU-2", 4 * mib)};
  ranks[0].leak_groups[0].named_steps = {{"test_a", 1, std::nullopt}};
  ranks[1].leak_groups[0].named_steps = {{"test_b", std::nullopt, 3 * mib}, {"test_a", 1, mib}};
  const std::string text = text_of(ranks);
  EXPECT_TRUE(has(text, " 1. test_b in rank 1: 3.0 MiB in an unknown number of allocations\n"))
      << text;
  EXPECT_TRUE(has(text, " 2. test_a in rank 1, rank 0: unknown bytes in 2 allocations\n")) << text;
  EXPECT_TRUE(has(text,
                  "       made in test_b (3.0 MiB in an unknown number of allocations), test_a "
                  "(unknown bytes in 2 allocations)\n"))
      << text;
}

}  // namespace
}  // namespace cuwarden
