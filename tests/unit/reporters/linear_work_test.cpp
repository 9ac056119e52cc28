// Work on tables of many rows takes about as many times longer as there are more rows.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/exports/exports.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/json/update.hpp"
#include "reporters/merging/merged_facts.hpp"
#include "reporters/merging/merger.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "tests/repetitions.hpp"
#include "tests/thread_time.hpp"
#include "tests/unit/reporters/merging/job_fixture.hpp"

namespace cuwarden {
namespace {

// Fails unless 8 times as many rows take far less than the 64 times longer that quadratic work
// takes. Times are compared since most of the work is done by containers and the JSON library,
// whose operations have no counter. A sanitizer changes times: with one, the work is only done.
template <class Work>
void expect_about_linear(const Work& work) {
  if (test::is_sanitized) {
    work(500);
    GTEST_SKIP() << "a sanitizer changes times";
  }
  constexpr std::size_t few = 4000, many = 8 * few;
  const std::int64_t few_ns = least_computed_ns(3, [&] { work(few); });
  const std::int64_t most_ns = 20 * std::max<std::int64_t>(few_ns, 100'000);
  EXPECT_LT(least_computed_ns(
                3, [&] { work(many); }, most_ns),
            most_ns);
}

TEST(Work, on_the_devices_of_many_hosts_is_linear) {
  expect_about_linear([](std::size_t hosts) {
    model::MergedReport report;
    for (std::size_t host = 0; host < hosts; ++host) {
      const std::string name = "a-host-with-a-long-name-" + std::to_string(host);
      model::MergedProcess process;
      process.host = name;
      process.visible_devices = "0,1";
      report.processes.push_back(process);
      model::MergedDevice device;
      device.id = static_cast<model::Id>(host + 1);
      device.host = name;
      device.processes = 2;
      report.devices.push_back(device);
    }
    find_idle_devices(report);
    EXPECT_EQ(report.idle_devices.size(), hosts);
  });
}

TEST(Work, on_many_settings_of_merged_reports_is_linear) {
  expect_about_linear([](std::size_t count) {
    std::vector<model::Report> ranks = {test::rank(0, "a", "GPU-1", 8),
                                        test::rank(1, "a", "GPU-1", 8)};
    for (std::size_t i = 0; i < count; ++i)
      ranks[0].settings.push_back({"CUWARDEN_" + std::to_string(i), "x", "default"});
    ranks[1].settings.assign(ranks[0].settings.rbegin(), ranks[0].settings.rend());
    EXPECT_EQ(test::merged(ranks).settings.size(), count);
  });
}

TEST(Work, on_many_devices_of_lines_of_json_is_linear) {
  expect_about_linear([](std::size_t count) {
    model::Report report;
    for (std::size_t i = 0; i < count; ++i) {
      model::Device device;
      device.device = static_cast<model::Id>(i);
      report.devices.push_back(device);
    }
    const Descriptor null = open_to_append("/dev/null", false);
    const auto output = std::make_unique<Output>(null.number());
    std::size_t all = 0;
    exports::jsonl(IndexedReport(std::move(report)), "r.json", *output,
                   [&](std::size_t, std::size_t rows) { all = rows; });
    EXPECT_EQ(output->finish(), 0);
    EXPECT_EQ(all, count);
  });
}

TEST(Work, on_the_rungs_of_many_incidents_of_a_trace_is_linear) {
  expect_about_linear([](std::size_t count) {
    model::Report report;
    for (std::size_t i = 0; i < count; ++i) {
      test::refuse(report, i);
      model::Rung rung;
      rung.incident = static_cast<model::Id>(i + 1);
      report.rungs.push_back(rung);
    }
    exports::perfetto()->add(IndexedReport(std::move(report)), "r.json");
  });
}

// Returns a report of one leak with `count` call stacks, each in a named step of its own.
model::Report report_of_steps(std::size_t count) {
  model::Report report = test::rank(0, "a", "GPU-1", 8);
  const model::LeakGroup group = report.leak_groups[0];
  report.leak_groups.assign(count, group);
  for (std::size_t i = 0; i < count; ++i)
    report.leak_groups[i].named_steps = {{"test_" + std::to_string(i), 1, 8}};
  return report;
}

TEST(Work, on_many_named_steps_of_a_merged_leak_is_linear) {
  expect_about_linear([](std::size_t count) {
    EXPECT_EQ(test::merged({report_of_steps(count)}).leaks[0].named_steps.size(), count);
  });
}

TEST(Work, on_many_named_steps_of_a_compared_leak_is_linear) {
  expect_about_linear([](std::size_t count) {
    LeaksByFingerprint leaks;
    add_leaks_of(IndexedReport(report_of_steps(count)), "", Style(false), leaks);
    EXPECT_EQ(leaks.begin()->second.named_steps.size(), count);
  });
}

TEST(Work, on_the_named_steps_of_a_row_that_is_read_is_linear) {
  expect_about_linear([](std::size_t count) {
    model::Report report = report_of_steps(1);
    report.leak_groups[0].named_steps.assign(count, {"test", 1, 8});
    Json json;
    update(json, report, Unlisted::kept);
    std::string error;
    const auto read = parse_report(json.dump(), "r.json", error);
    ASSERT_TRUE(read) << error;
    EXPECT_EQ(read->leak_groups[0].named_steps.size(), count);
  });
}

TEST(Work, on_the_rows_of_a_table_of_a_later_version_is_linear) {
  expect_about_linear([](std::size_t count) {
    Json known;
    update(known, model::Report(), Unlisted::kept);
    std::string text = known.dump();
    text.pop_back();
    text += ", \"later_table\": [{\"id\": 1}";
    for (std::size_t i = 1; i < count; ++i) text += ",{\"id\": 1}";
    text += "], \"later_object\": {\"rows\": [[1]";
    for (std::size_t i = 1; i < count; ++i) text += ",{}";
    text += "]}}";
    std::string error;
    EXPECT_TRUE(parse_report(text, "r.json", error)) << error;
  });
}

}  // namespace
}  // namespace cuwarden
