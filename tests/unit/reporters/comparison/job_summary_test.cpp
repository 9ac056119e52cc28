// One view over the reports of a job: who ran out of memory first, idle devices, common leaks.
#include "reporters/comparison/job_summary.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cuwarden {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

// A rank with a leak on a device of its host.
model::Report rank(std::uint64_t number, const std::string& host, const std::string& uuid,
                   std::uint64_t bytes) {
  model::Report report;
  report.process.program = "/opt/app";
  report.process.host = host;
  report.process.pid = 100 + number;
  report.process.start = "2026-11-26T04:28:16.000000000Z";
  report.job.rank = number;
  report.job.visible_devices = "0,1,2,3";
  model::Device device;
  device.uuid = uuid;
  report.devices = {device};
  model::LeakGroup leak;
  leak.fingerprint = "00000000000000ab";
  leak.kind = "device";
  leak.api = "cudaMalloc";
  leak.count = 1;
  leak.bytes = bytes;
  report.leak_groups = {leak};
  return report;
}

void refuse(model::Report& report, std::uint64_t after_ns, const std::string& outcome = "failed") {
  model::Incident incident;
  incident.id = static_cast<model::Id>(report.incidents.size() + 1);
  incident.time_ns = after_ns;
  incident.api = "cudaMalloc";
  incident.bytes = 64 << 20;
  incident.device = 0;
  incident.outcome = outcome;
  incident.verdict = "device_full_own";
  report.incidents.push_back(incident);
}

JobSummary summary_of(const std::vector<model::Report>& reports) {
  JobSummary summary{Style(false)};
  for (const model::Report& report : reports) summary.add(IndexedReport(report));
  return summary;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(JobSummaries, name_the_rank_that_ran_out_of_memory_first_by_wall_clock) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8),
                                      rank(2, "a", "GPU-2", 8)};
  refuse(ranks[0], 5 * second_ns);
  ranks[1].process.start = "2026-11-26T04:28:14.000000000Z";
  refuse(ranks[1], 6 * second_ns);
  refuse(ranks[2], 1 * second_ns, "rescued");
  model::DeviceProcess other;
  other.incident = 1;
  other.device = 0;
  other.pid = 100;
  other.used_bytes = 3 << 20;
  ranks[1].device_processes = {other};
  other.pid = 4711;
  other.used_bytes = std::nullopt;
  ranks[1].device_processes.push_back(other);
  ranks[1].accounts = {{0, 1, "live_device", 2 << 20}, {0, 1, "context", 5 << 20}};
  const std::string text = summary_of(ranks).first_refusal();
  EXPECT_TRUE(has(text, "FIRST OUT OF MEMORY: rank 1 at ")) << text;
  EXPECT_TRUE(has(text, ", cudaMalloc of 64.0 MiB failed: device_full_own\n")) << text;
  EXPECT_TRUE(has(text, "  1 other process followed within 1.0 s\n")) << text;
  EXPECT_TRUE(has(text,
                  "  GPU-1 was held by: rank 1 itself 2.0 MiB, rank 0 3.0 MiB, pid 4711 "
                  "unknown\n"))
      << text;
}

TEST(JobSummaries, say_that_clocks_of_several_hosts_are_compared) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "b", "GPU-2", 8)};
  for (model::Report& report : ranks) refuse(report, second_ns);
  const std::string text = summary_of(ranks).first_refusal();
  EXPECT_TRUE(has(text, "rank 0 on a at ")) << text;
  EXPECT_TRUE(has(text, "if the clocks of the hosts agree")) << text;
}

TEST(JobSummaries, without_a_failed_request_have_no_such_line) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8)};
  refuse(ranks[0], 1, "recovered_by_caller");
  EXPECT_EQ(summary_of(ranks).first_refusal(), "");
}

TEST(JobSummaries, name_devices_that_are_idle_while_one_is_shared) {
  const std::string text = summary_of({rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8),
                                       rank(2, "b", "GPU-2", 8), rank(3, "b", "GPU-3", 8)})
                               .idle_devices();
  EXPECT_EQ(text,
            "2 processes use GPU-1, 3 visible GPUs of a are idle: check how ranks are bound to "
            "GPUs, and that each chooses by its local rank\n");
}

TEST(JobSummaries, do_not_judge_hosts_whose_ranks_see_different_devices) {
  std::vector<model::Report> ranks = {rank(0, "a", "GPU-1", 8), rank(1, "a", "GPU-1", 8)};
  ranks[1].job.visible_devices = "1";
  EXPECT_EQ(summary_of(ranks).idle_devices(), "");
  for (model::Report& report : ranks) report.job.visible_devices = std::nullopt;
  EXPECT_EQ(summary_of(ranks).idle_devices(), "");
}

TEST(JobSummaries, show_leaks_of_several_processes_and_the_one_that_stands_out) {
  const JobSummary summary =
      summary_of({rank(0, "a", "GPU-1", 4 << 20), rank(1, "a", "GPU-2", 4 << 20),
                  rank(2, "a", "GPU-3", 5 << 20), rank(5, "a", "GPU-4", 12 << 20)});
  const std::string text = summary.common_leaks(10);
  EXPECT_TRUE(has(text,
                  " 1. 25.0 MiB in 4 processes (least 4.0 MiB, median 5.0 MiB, most 12.0 "
                  "MiB; rank 5 holds 2× the median) · device memory · cudaMalloc\n"))
      << text;
  EXPECT_TRUE(has(
      summary_of({rank(0, "a", "GPU-1", 4 << 20), rank(1, "a", "GPU-2", 4 << 20)}).common_leaks(10),
      "in 2 processes (4.0 MiB each)"));
  EXPECT_EQ(summary_of({rank(0, "a", "GPU-1", 8)}).common_leaks(10), "");
}

}  // namespace
}  // namespace cuwarden
