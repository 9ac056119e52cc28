// The merged report's tables, made of reports and of other merged reports.
#include "reporters/merging/merger.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reporters/json/update.hpp"
#include "reporters/merging/leaks_of_merged.hpp"
#include "reporters/merging/merged_facts.hpp"
#include "tests/unit/reporters/merging/job_fixture.hpp"

namespace cuwarden {
namespace {

using test::merged;
using test::mib;
using test::rank;
using test::refuse;
using test::second_ns;

// Four ranks, of which two share a device and were refused memory of it.
std::vector<model::Report> job() {
  std::vector<model::Report> ranks = {
      rank(0, "a", "GPU-2", 4 * mib), rank(1, "a", "GPU-1", 4 * mib),
      rank(2, "a", "GPU-1", 5 * mib), rank(3, "b", "GPU-3", 12 * mib)};
  refuse(ranks[1], 3 * second_ns);
  refuse(ranks[2], 2 * second_ns);
  test::hold(ranks[2], 101, 3 * mib);
  test::hold(ranks[2], 4711, 9 * mib);
  ranks[3].leak_groups.push_back(ranks[3].leak_groups.front());
  ranks[3].leak_groups.back().fingerprint = "00000000000000cd";
  ranks[3].leak_groups.back().bytes = 1;
  model::LeakGroup suppressed = ranks[0].leak_groups.front();
  suppressed.fingerprint = "00000000000000ef";
  suppressed.suppressed = true;
  ranks[0].leak_groups.push_back(suppressed);
  for (model::Report& report : ranks) {
    report.settings = {{"CUWARDEN_POOL", "auto", "default"}};
    report.settings.push_back({"CUWARDEN_WAIT", std::to_string(*report.job.rank), "environment"});
  }
  return ranks;
}

std::string json(const model::MergedReport& report) {
  Json made;
  update(made, report, Unlisted::kept);
  return made.dump(1);
}

TEST(MergedReports, name_the_first_refused_process_those_that_followed_and_the_holders) {
  const model::MergedReport report = merged(job());
  ASSERT_TRUE(report.first_refusal);
  EXPECT_EQ(report.first_refusal->process, 3u);
  EXPECT_EQ(report.first_refusal->time, "2026-11-26T04:28:18.000000000Z");
  EXPECT_EQ(report.first_refusal->followed_by, std::vector<model::Id>{2});
  EXPECT_EQ(report.first_refusal->followed_within_ns, second_ns);
  EXPECT_TRUE(report.first_refusal->several_clocks);
  ASSERT_EQ(report.devices.size(), 3u);
  EXPECT_EQ(report.devices[0].uuid, "GPU-1") << "devices are sorted by name";
  EXPECT_EQ(report.devices[0].processes, 2u);
  EXPECT_EQ(report.devices[0].full_process, 3u);
  EXPECT_EQ(report.devices[1].full_time, std::nullopt);
  std::vector<std::pair<model::MaybeId, model::Figure>> holders;
  for (const model::DeviceHolder& holder : report.device_holders)
    holders.emplace_back(holder.process, holder.bytes);
  EXPECT_EQ(holders, (decltype(holders){{3, std::nullopt}, {std::nullopt, 9 * mib}, {2, 3 * mib}}));
}

TEST(MergedReports, sum_leaks_by_fingerprint_with_the_values_of_each_process) {
  const model::MergedReport report = merged(job());
  ASSERT_EQ(report.leaks.size(), 2u);
  const model::MergedLeak& leak = report.leaks[0];
  EXPECT_EQ(leak.fingerprint, "00000000000000ab");
  EXPECT_EQ(leak.bytes, 25 * mib);
  EXPECT_EQ(leak.lost_bytes, 25 * mib);
  EXPECT_EQ(leak.processes, 4u);
  EXPECT_EQ(leak.least_bytes, 4 * mib);
  EXPECT_EQ(leak.median_bytes, 5 * mib);
  EXPECT_EQ(leak.most_bytes, 12 * mib);
  EXPECT_EQ(leak.outlier, 4u);
  EXPECT_EQ(leak.where, "cache.cpp:41 in Cache::insert(Key)");
  ASSERT_EQ(report.leaks_of_processes.size(), 5u);
  EXPECT_EQ(report.leaks_of_processes[2].process, 3u);
  EXPECT_EQ(report.leaks_of_processes[2].bytes, 5 * mib);
  EXPECT_EQ(report.suppressed_fingerprints, std::vector<std::string>{"00000000000000ef"});
  EXPECT_EQ(report.frames.size(), 1u) << "a frame of several stacks is stored once";
}

TEST(MergedReports, keep_the_settings_that_all_processes_share) {
  const model::MergedReport report = merged(job());
  ASSERT_EQ(report.settings.size(), 1u);
  EXPECT_EQ(report.settings[0].name, "CUWARDEN_POOL");
}

TEST(MergedReports, made_of_merged_reports_are_those_of_the_reports_themselves) {
  const std::vector<model::Report> ranks = job();
  Merger halves[2], whole;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    halves[i / 2].add(std::to_string(i) + ".json", IndexedReport(ranks[i]));
  for (Merger& half : halves) EXPECT_EQ(whole.add(half.finish()), 0u);
  EXPECT_EQ(json(whole.finish()), json(merged(ranks)));
}

TEST(MergedReports, count_a_process_once_that_two_merged_reports_have) {
  const std::vector<model::Report> ranks = job();
  Merger whole;
  EXPECT_EQ(whole.add(merged({ranks[0], ranks[1], ranks[2]})), 0u);
  EXPECT_EQ(whole.add(merged({ranks[2], ranks[1], ranks[3]})), 2u);
  model::MergedReport twice = whole.finish();
  const model::MergedReport once = merged(ranks);
  EXPECT_EQ(twice.processes.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) twice.processes[i].report = once.processes[i].report;
  EXPECT_EQ(json(twice), json(once));
}

TEST(MergedReports, know_a_process_again_by_pid_start_and_host_if_both_are_known) {
  Merger merger;
  merger.add("a.json", IndexedReport(rank(1, "a", "GPU-1", 8)));
  const std::string start = "2026-11-26T04:28:16.000000000Z";
  EXPECT_TRUE(merger.knows({"a", 101, start, "/elsewhere/app"}));
  EXPECT_TRUE(merger.knows({std::nullopt, 101, start, "app"})) << "a redacted report has no host";
  EXPECT_FALSE(merger.knows({"b", 101, start, "app"}));
  EXPECT_FALSE(merger.knows({"a", 102, start, "app"}));
  EXPECT_FALSE(merger.knows({"a", 101, start, "other"})) << "exec() keeps pid and start";
  EXPECT_FALSE(merger.knows({"a", 101, "", "app"}));
}

TEST(MergedReports, leave_a_sum_unknown_if_a_part_is) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 4 * mib),
                                      rank(1, "a", "GPU-1", 4 * mib),
                                      rank(2, "a", "GPU-2", 4 * mib)};
  ranks[1].totals[0].live_bytes = std::nullopt;
  const model::MergedReport report = merged(ranks);
  EXPECT_EQ(report.device_uses[1].live_bytes, std::nullopt);
  EXPECT_EQ(report.devices[0].live_bytes, std::nullopt);
  EXPECT_EQ(report.devices[0].peak_bytes, 16 * mib);
  EXPECT_EQ(report.devices[1].live_bytes, 4 * mib);
  ranks[1].totals[0].peak_bytes = std::nullopt;
  EXPECT_EQ(merged(ranks).processes[1].peak_bytes, std::nullopt);
}

TEST(MergedReports, have_a_doubt_and_no_sum_if_a_merged_part_has_unknown_figures) {
  model::MergedReport part =
      merged({rank(0, "a", "GPU-1", 4 * mib), rank(1, "a", "GPU-1", 4 * mib)});
  part.leaks_of_processes[1].bytes = part.leaks_of_processes[1].count = std::nullopt;
  Merger merger;
  merger.add(part);
  const model::MergedReport report = merger.finish();
  EXPECT_EQ(report.leaks[0].bytes, std::nullopt);
  EXPECT_EQ(report.leaks[0].median_bytes, std::nullopt);
  EXPECT_EQ(report.leaks[0].lost_bytes, 8 * mib);
  const std::vector<std::string> doubts = doubts_about(report);
  ASSERT_FALSE(doubts.empty());
  EXPECT_EQ(doubts.back(), "a merged report does not know how many allocations leaked");
}

TEST(MergedReports, add_those_processes_of_a_merged_report_that_count) {
  model::Report of_b = rank(1, "b", "", 4 * mib);
  of_b.devices[0].uuid = std::nullopt;
  const model::MergedReport part = merged({rank(0, "a", "GPU-1", 4 * mib), of_b});
  Merger merger;
  EXPECT_EQ(merger.add(part, [](const model::MergedProcess& row) { return row.rank == 0u; }), 0u);
  const model::MergedReport report = merger.finish();
  EXPECT_EQ(report.processes.size(), 1u);
  EXPECT_EQ(report.devices.size(), 1u) << "a device that no process of the report used is left out";
  EXPECT_EQ(report.leaks[0].bytes, 4 * mib);
}

TEST(MergedReports, do_not_know_sums_of_leaks_whose_figures_a_report_does_not_know) {
  std::vector<model::Report> ranks = job();
  ranks[1].leak_groups[0].bytes = std::nullopt;
  ranks[1].leak_groups.push_back(ranks[1].leak_groups[0]);
  ranks[1].leak_groups[1].fingerprint = "00000000000000cd";
  ranks[1].leak_groups[1].count = std::nullopt;
  const model::MergedReport report = merged(ranks);
  ASSERT_EQ(report.leaks.size(), 2u);
  EXPECT_EQ(report.leaks[0].fingerprint, "00000000000000ab");
  EXPECT_EQ(report.leaks[0].bytes, std::nullopt);
  EXPECT_EQ(report.leaks[0].count, 4u);
  EXPECT_EQ(report.leaks[0].unknown_bytes, std::nullopt);
  EXPECT_EQ(report.leaks[0].most_bytes, std::nullopt);
  EXPECT_EQ(report.leaks[1].count, std::nullopt);
  EXPECT_FALSE(doubts_about(report).empty());
}

TEST(MergedReports, say_nothing_of_idle_devices_if_an_entry_is_not_understood) {
  const auto idle_of = [](const std::string& list) {
    std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8)};
    for (model::Report& report : ranks) report.job.visible_devices = list;
    const model::MergedReport report = merged(ranks);
    return report.idle_devices.empty() ? 0 : report.idle_devices[0].idle.value_or(0);
  };
  EXPECT_EQ(idle_of("0,1,2"), 2u);
  EXPECT_EQ(idle_of("0, 1"), 1u);
  EXPECT_EQ(idle_of("GPU-6b1f3c2a,GPU-00ff"), 1u);
  EXPECT_EQ(idle_of("MIG-GPU-6b1f3c2a/1/0,MIG-00ff-12"), 1u);
  for (const char* const wrong :
       {"0,1,-1", "0,x,2", "0,,1", "0,1,", "0,0,1", "0;1;2", "all", "NoDevFiles", "", "-1", "0,1.5",
        "0,GPU-", "0,99999", "GPU-xyz,GPU-12"})
    EXPECT_EQ(idle_of(wrong), 0u) << wrong;
}

TEST(MergedReports, pass_over_a_refusal_whose_time_is_damaged) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8)};
  refuse(ranks[0], ~std::uint64_t{0} - second_ns);
  refuse(ranks[0], 3 * second_ns);
  refuse(ranks[1], 2 * second_ns);
  const model::MergedReport report = merged(ranks);
  ASSERT_TRUE(report.first_refusal);
  EXPECT_EQ(report.first_refusal->process, 2u);
  EXPECT_EQ(report.first_refusal->followed_within_ns, second_ns);
  EXPECT_EQ(report.devices[0].full_process, 2u);
}

// Returns the reports without what redaction takes out.
std::vector<model::Report> redacted(std::vector<model::Report> reports) {
  for (model::Report& report : reports) {
    report.process.host = std::nullopt;
    report.devices[0].uuid = std::nullopt;
  }
  return reports;
}

TEST(MergedReports, keep_devices_of_redacted_reports_apart) {
  const std::vector<model::Report> ranks = redacted(job());
  const model::MergedReport report = merged(ranks);
  ASSERT_EQ(report.devices.size(), 4u);
  for (const model::MergedDevice& device : report.devices) EXPECT_EQ(device.processes, 1u);
  EXPECT_TRUE(report.idle_devices.empty());
  Merger again;
  EXPECT_EQ(again.add(merged({ranks[0], ranks[1]})), 0u);
  EXPECT_EQ(again.add(merged({ranks[1], ranks[2], ranks[3]})), 1u);
  model::MergedReport twice = again.finish();
  for (std::size_t i = 0; i < 4; ++i) twice.processes[i].report = report.processes[i].report;
  EXPECT_EQ(json(twice), json(report));
}

TEST(MergedReports, compare_several_clocks_if_the_host_of_one_of_several_processes_is_unknown) {
  std::vector<model::Report> ranks = redacted({rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-2", 8)});
  for (model::Report& report : ranks) refuse(report, second_ns);
  EXPECT_TRUE(merged(ranks).first_refusal->several_clocks);
  EXPECT_FALSE(merged({ranks[0]}).first_refusal->several_clocks);
  for (model::Report& report : ranks) report.process.host = "a";
  EXPECT_FALSE(merged(ranks).first_refusal->several_clocks);
}

TEST(MergedReports, keep_the_holders_of_each_device_when_their_rows_are_mixed) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-2", 8)};
  for (model::Report& report : ranks) {
    refuse(report, second_ns);
    test::hold(report, 4711 + *report.job.rank, 9 * mib);
  }
  const model::MergedReport report = merged(ranks);
  ASSERT_EQ(report.device_holders.size(), 4u);
  model::MergedReport mixed = report;
  std::swap(mixed.device_holders[1], mixed.device_holders[2]);
  const auto by_device = holders_by_device(mixed);
  ASSERT_EQ(by_device.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(by_device[i].size(), 2u);
    EXPECT_EQ(by_device[i][1]->pid, 4711 + i);
  }
  Merger merger;
  merger.add(mixed);
  EXPECT_EQ(json(merger.finish()), json(report));
}

TEST(LeaksOfMergedReports, are_those_of_the_reports) {
  std::vector<model::Report> ranks = job();
  ranks[1].leak_groups[0].lost_count = ranks[1].leak_groups[0].lost_bytes = std::nullopt;
  LeaksByFingerprint expected, leaks;
  for (const model::Report& report : ranks)
    add_leaks_of(IndexedReport(report), "", Style(false), expected);
  add_leaks_of(IndexedReport(leaks_of_merged(merged(ranks))), "", Style(false), leaks);
  ASSERT_EQ(leaks.size(), expected.size());
  for (const auto& [fingerprint, leak] : expected) {
    const FingerprintedLeak& found = leaks.at(fingerprint);
    EXPECT_EQ(found.count, leak.count);
    EXPECT_EQ(found.bytes, leak.bytes);
    EXPECT_EQ(found.lost_bytes, leak.lost_bytes);
    EXPECT_EQ(found.unknown_count, leak.unknown_count);
    EXPECT_EQ(found.unknown_bytes, leak.unknown_bytes);
    EXPECT_EQ(found.caller, leak.caller);
    EXPECT_EQ(found.pattern, leak.pattern);
    EXPECT_EQ(found.stack, leak.stack);
  }
}

TEST(LeaksOfMergedReports, have_the_doubts_about_each_process) {
  std::vector<model::Report> ranks = job();
  EXPECT_TRUE(leaks_of_merged(merged(ranks)).records->complete);
  ranks[2].leaks.count = 9;
  const auto records = leaks_of_merged(merged(ranks)).records;
  EXPECT_EQ(records->reasons,
            std::vector<std::string>{"2.json: its table leak_groups has 1 of 9 allocations"});
}

TEST(LeaksOfMergedReports, have_a_doubt_if_the_merged_report_gives_no_reason_for_its_own) {
  model::MergedReport report = merged({rank(0, "a", "GPU-1", 8)});
  EXPECT_TRUE(leaks_of_merged(report).records->complete);
  report.tool.complete = false;
  EXPECT_EQ(leaks_of_merged(report).records->reasons,
            std::vector<std::string>{"it does not say why"});
  Merger merger;
  merger.add(report);
  EXPECT_FALSE(merger.finish().tool.complete);
}

TEST(LeaksOfMergedReports, have_a_doubt_if_processes_or_leaks_were_taken_out) {
  EXPECT_FALSE(leaks_of_merged(merged({})).records->complete);
  const model::MergedReport whole = merged({rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8)});
  model::MergedReport without_leaks = whole, without_rows = whole, suppressed = whole;
  without_leaks.leaks[0].count = 1;
  without_rows.leaks_of_processes.pop_back();
  for (const model::MergedReport& report : {without_leaks, without_rows})
    EXPECT_EQ(leaks_of_merged(report).records->reasons,
              std::vector<std::string>{"a merged report lists 1 of 2 allocations that leaked"});
  suppressed.leaks.clear();
  suppressed.leaks_of_processes.clear();
  suppressed.suppressed_fingerprints = {"00000000000000ab"};
  EXPECT_TRUE(leaks_of_merged(suppressed).records->complete);
}

TEST(LeaksOfMergedReports, have_no_doubt_if_few_tensors_stand_for_many_allocations) {
  model::Report report = rank(0, "a", "GPU-1", 8);
  report.modules[0].path = "/opt/torch/lib/libc10_cuda.so";
  report.leak_groups[0].module = 3;
  report.leak_groups[0].device = 0;
  report.leak_groups[0].count = report.leaks.count = 5;
  model::FrameworkSite site;
  site.framework = "PyTorch";
  site.device = 0;
  site.count = 1;
  site.bytes = 8;
  site.fingerprint = "00000000000000aa";
  report.framework_sites = {site};
  const model::MergedReport tensors = merged({report});
  ASSERT_EQ(tensors.leaks.size(), 1u);
  EXPECT_EQ(tensors.leaks[0].count, 1u);
  EXPECT_TRUE(leaks_of_merged(tensors).records->complete);
}

TEST(LeaksOfMergedReports, were_searched_for_pointers_if_those_of_all_processes_were) {
  std::vector<model::Report> ranks = job();
  for (std::size_t i = 1; i < ranks.size(); ++i) ranks[i].pointer_search.emplace();
  EXPECT_FALSE(leaks_of_merged(merged(ranks)).pointer_search);
  ranks[0].pointer_search.emplace();
  EXPECT_TRUE(leaks_of_merged(merged(ranks)).pointer_search);
}

}  // namespace
}  // namespace cuwarden
