// Data of the page that `cuwarden export --format html` makes.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/exports/page/packed_data.hpp"
#include "reporters/exports/page/page_json.hpp"
#include "reporters/exports/page/page_report.hpp"
#include "reporters/exports/page/page_stacks.hpp"
#include "reporters/exports/page/page_template.hpp"

namespace cuwarden {
namespace {

std::string unpacked(const std::string& text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (const char letter : text) {
    if (letter == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(letter));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  std::string data(std::size_t{64} << 20, '\0');
  uLongf size = data.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(data.data()), &size,
                       reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  data.resize(size);
  return data;
}

// Returns a report with a stack of these frames each, innermost first, and a group for each stack.
// The function of frame n is "step_n".
model::Report report_with_stacks(std::vector<std::vector<model::Id>> stacks) {
  model::Report report;
  report.process.program = "/opt/app";
  report.process.start = "2026-11-26T04:28:16.977002377Z";
  report.process.end_ns = 60'000'000'000;
  report.process.end_reason = "exit";
  model::Module& module = report.modules.emplace_back();
  module.id = 1;
  module.path = "/opt/app";
  for (model::Id id = 1; id <= 3000; ++id) {
    model::Frame& frame = report.frames.emplace_back();
    frame.id = id;
    frame.function = "step_" + std::to_string(id);
    frame.file = "/src/part_" + std::to_string(id % 40) + ".cpp";
    frame.line = id;
    frame.module = 1;
  }
  model::Id id = 0;
  for (std::vector<model::Id>& frames : stacks) {
    model::Stack& stack = report.stacks.emplace_back();
    stack.id = ++id;
    stack.frames = std::move(frames);
    model::LeakGroup& group = report.leak_groups.emplace_back();
    group.stack = id;
    group.kind = "device";
    group.api = "cudaMalloc";
    group.device = 0;
    group.count = 1 + id % 13;
    group.bytes = 256 * (1 + id % 997);
  }
  return report;
}

nlohmann::json page_of(const model::Report& report) {
  PageStacks stacks;
  PageJson page("{}");
  const IndexedReport indexed(report);
  StacksOfReport numbers(stacks, indexed);
  std::size_t done = 0, all = 0, calls = 0;
  const std::string one =
      page_report(indexed, "/tmp/app.json", numbers, [&](std::size_t rows, std::size_t of) {
        EXPECT_GE(rows, done);
        EXPECT_GE(of, report.leak_groups.size());
        ++calls;
        done = rows;
        all = of;
      });
  EXPECT_EQ(done, all);
  EXPECT_GT(calls, 0u);
  stacks.add_to(page);
  page.add("report", one);
  return nlohmann::json::parse(page.text());
}

// Returns the functions of a stack of the page, innermost first.
std::vector<std::string> functions_of(const nlohmann::json& page, std::size_t stack) {
  std::size_t node = 0;
  for (std::size_t i = 0; i <= stack; ++i)
    node += static_cast<std::size_t>(page["stacks"]["step"][i].get<std::int64_t>());
  std::vector<std::string> functions;
  while (node != 0) {
    const std::size_t frame = page["nodes"]["frame"][node];
    functions.push_back(page["strings"][page["frames"]["name"][frame].get<std::size_t>()]);
    node -= page["nodes"]["up"][node].get<std::size_t>();
  }
  return functions;
}

TEST(PageData, packed_is_what_was_packed) {
  for (const std::string text : {"", "a", "ab", "abc", "</script>\xff"})
    EXPECT_EQ(unpacked(packed_data(text)), text);
  EXPECT_EQ(packed_data("</script>").find('<'), std::string::npos);
}

TEST(PageData, stacks_with_the_same_outer_frames_share_nodes) {
  const nlohmann::json page = page_of(report_with_stacks({{3, 2, 1}, {4, 2, 1}, {3, 2, 1}, {1}}));
  // The root, and the frames 1, 2, 3 and 4.
  EXPECT_EQ(page["nodes"]["up"].size(), 5u);
  // Number 0 is no stack. Two stacks are the same.
  EXPECT_EQ(page["stacks"]["step"].size(), 4u);
  const nlohmann::json& groups = page["report"]["groups"];
  std::map<std::string, std::vector<std::string>> expected = {
      {"1024", {"step_3", "step_2", "step_1"}}, {"1280", {"step_1"}}};
  std::size_t found = 0;
  for (std::size_t i = 0; i < groups["stack"].size(); ++i) {
    const auto wanted = expected.find(groups["bytes"][i].dump());
    if (wanted == expected.end()) continue;
    ++found;
    EXPECT_EQ(functions_of(page, groups["stack"][i]), wanted->second);
  }
  EXPECT_EQ(found, expected.size());
}

TEST(PageData, unknown_stacks_have_number_0) {
  model::Report report = report_with_stacks({{1}});
  report.leak_groups[0].stack.reset();
  report.leak_groups.emplace_back().stack = 77;
  const nlohmann::json page = page_of(report);
  for (const nlohmann::json& stack : page["report"]["groups"]["stack"]) EXPECT_EQ(stack, 0);
}

TEST(PageData, unknown_figures_are_null) {
  model::Report report = report_with_stacks({{1}});
  report.leak_groups[0].bytes.reset();
  EXPECT_TRUE(page_of(report)["report"]["groups"]["bytes"][0].is_null());
}

TEST(PageData, parts_of_a_device_keep_their_sum) {
  model::Report report = report_with_stacks({});
  report.accounts.push_back({0, std::nullopt, "live_device", 450});
  report.accounts.push_back({0, std::nullopt, "unexplained", -50});
  const nlohmann::json page = page_of(report);
  std::int64_t sum = 0;
  for (const nlohmann::json& bytes : page["report"]["accounts"]["bytes"])
    sum += bytes.get<std::int64_t>();
  EXPECT_EQ(sum, 400);
}

TEST(PageData, slabs_keep_their_addresses) {
  model::Report report = report_with_stacks({});
  model::Fragmentation& all = report.fragmentation.emplace_back();
  all.slab_count = 2;
  all.page_bytes = 2 << 20;
  report.slab_map.push_back({0, "0x7f6447a00000", 4096, 512, 3});
  report.slab_map.push_back({0, "0x7f6447800000", 4096, 512, 1});
  const nlohmann::json map = page_of(report)["report"]["slabs"][0];
  EXPECT_EQ(map["step"][0].get<std::uint64_t>() * (2 << 20), 0x7f6447800000u);
  EXPECT_EQ(map["step"][1], 1);
  EXPECT_EQ(map["live"], nlohmann::json({1, 3}));
}

TEST(PageData, slabs_with_equal_stacks_share_one_list) {
  // Stacks 3 and 1 have equal frames.
  model::Report report = report_with_stacks({{1}, {2, 1}, {1}, {}});
  report.fragmentation.emplace_back().page_bytes = 2 << 20;
  const auto add = [&](const char* address, std::vector<model::Id> stacks) {
    report.slab_map.push_back({0, address, 4096, 512, 3, std::move(stacks)});
  };
  add("0x7f6447c00000", {2, 1});
  add("0x7f6447a00000", {});
  add("0x7f6447800000", {2, 3, 1});
  add("0x7f6447e00000", {3, 4});
  const nlohmann::json page = page_of(report);
  const nlohmann::json map = page["report"]["slabs"][0];
  EXPECT_EQ(map["set"], nlohmann::json({1, 0, 1, 2}));
  ASSERT_EQ(map["sets"].size(), 3u);
  EXPECT_TRUE(map["sets"][0].empty());
  ASSERT_EQ(map["sets"][1].size(), 2u);
  EXPECT_EQ(functions_of(page, map["sets"][1][0]), std::vector<std::string>({"step_2", "step_1"}));
  EXPECT_EQ(functions_of(page, map["sets"][1][1]), std::vector<std::string>({"step_1"}));
  EXPECT_EQ(map["sets"][2][0], map["sets"][1][1]);
}

TEST(PageData, a_map_without_stacks_of_slabs_has_no_numbers_of_lists) {
  model::Report report = report_with_stacks({});
  report.worst_fragmentation.emplace_back();
  report.worst_slab_map.push_back({0, "0x7f6447800000", 1, 512});
  const nlohmann::json map = page_of(report)["report"]["slabs"][0];
  EXPECT_EQ(map["sets"].size(), 1u);
  EXPECT_TRUE(map["set"].empty());
}

TEST(PageData, a_sentence_about_each_incident_comes_before_the_leaks) {
  model::Report report = report_with_stacks({{1}});
  report.totals.emplace_back().allocations = 1;
  report.leaks.bytes = 512;
  report.leaks.count = 2;
  model::Incident& incident = report.incidents.emplace_back();
  incident.id = 1;
  incident.time_ns = 17'800'000'000;
  incident.api = "cudaMalloc";
  incident.kind = "device";
  incident.bytes = std::uint64_t{1} << 33;
  incident.device = 0;
  incident.stack = 1;
  incident.result = "CUDA_ERROR_OUT_OF_MEMORY";
  incident.outcome = "failed";
  incident.verdict = "device_full_own";
  incident.failed_count = 1;
  incident.advice = "all is live: free \x1b[31m something";
  const nlohmann::json summary = page_of(report)["report"]["summary"];
  ASSERT_GE(summary.size(), 3u);
  const std::string title = summary[0]["title"];
  EXPECT_TRUE(title.starts_with("OUT OF MEMORY ")) << title;
  EXPECT_NE(title.find(": cudaMalloc of 8.0 GiB (GPU 0) failed"), title.npos) << title;
  EXPECT_EQ(summary[0]["lines"][0], "To do: free ?[31m something");
  EXPECT_EQ(summary[0]["lines"][1], "all is live (device_full_own)");
  EXPECT_EQ(summary[0]["incident"], 1);
  EXPECT_EQ(summary[1]["title"].get<std::string>().find("app (pid"), 0u);
  // Nothing is known to be lost, and nothing grows.
  EXPECT_EQ(summary[2]["title"], "ALIVE AT EXIT: 512 B in 2 allocations never freed");
}

TEST(PageData, memory_alive_at_the_exit_is_said_not_to_grow_only_if_that_is_known) {
  model::Report report = report_with_stacks({{1}});
  report.totals.emplace_back().allocations = 1;
  report.leaks.bytes = 512;
  report.leaks.count = 2;
  report.leak_groups[0].growth = "one_time";
  model::FrameworkSite& site = report.framework_sites.emplace_back();
  site.framework = "PyTorch";
  site.growth = "steady";
  const auto line = [&]() -> std::string {
    return page_of(report)["report"]["summary"][2]["lines"][0];
  };
  EXPECT_TRUE(line().starts_with("None of it is known to be lost, and none of it grows: "))
      << line();
  report.framework_sites[0].growth.reset();
  EXPECT_TRUE(line().starts_with("None of it is known to be lost, and none of it is known to grow"))
      << line();
}

TEST(PageData, lost_memory_is_headed_as_a_leak) {
  model::Report report = report_with_stacks({{1}});
  report.totals.emplace_back().allocations = 1;
  report.leaks.bytes = 512;
  report.leaks.count = 2;
  report.leak_groups[0].lost_count = 1;
  report.leak_groups[0].lost_bytes = 256;
  const nlohmann::json summary = page_of(report)["report"]["summary"];
  ASSERT_GE(summary.size(), 3u);
  EXPECT_EQ(summary[2]["title"], "LEAKS: 512 B in 2 allocations never freed");
}

TEST(PageData, steps_and_stacks_that_allocated_most_are_in_it) {
  model::Report report = report_with_stacks({{2, 1}});
  report.steps.push_back({1, 5'000'000, "warm up", 7'000'000});
  report.steps.push_back({2, 9'000'000, std::nullopt, std::nullopt});
  report.allocation_sites.push_back({"device", "cudaMalloc", 0, 1, 7, 4096});
  const nlohmann::json page = page_of(report);
  const nlohmann::json& steps = page["report"]["steps"];
  EXPECT_EQ(steps["number"], nlohmann::json({1, 2}));
  EXPECT_EQ(steps["time"], nlohmann::json({5000, 9000}));
  EXPECT_EQ(page["strings"][steps["name"][0].get<std::size_t>()], "warm up");
  EXPECT_EQ(steps["name"][1], 0);
  EXPECT_EQ(steps["name_end"], nlohmann::json({7000, nullptr}));
  const nlohmann::json& allocated = page["report"]["allocated"];
  EXPECT_EQ(functions_of(page, allocated["stack"][0]),
            (std::vector<std::string>{"step_2", "step_1"}));
  EXPECT_EQ(allocated["bytes"][0], 4096);
  EXPECT_EQ(allocated["count"][0], 7);
}

TEST(PageData, a_report_of_a_hundred_thousand_stacks_takes_less_than_3_MiB) {
#if defined(CUWARDEN_SANITIZED)
  constexpr std::size_t count = 1'000;  // a sanitizer makes each many times slower
#else
  constexpr std::size_t count = 100'000;
#endif
  std::vector<std::vector<model::Id>> stacks;
  std::uint64_t random = 1;
  std::vector<model::Id> outer;
  for (std::size_t i = 0; i < count; ++i) {
    // A new stack differs from the one before in its innermost frames: one to five of twenty.
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::size_t kept = outer.empty() ? 0 : 15 + (random >> 33) % 5;
    outer.resize(kept);
    while (outer.size() < 20) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      outer.push_back(static_cast<model::Id>(1 + (random >> 33) % 3000));
    }
    stacks.emplace_back(outer.rbegin(), outer.rend());
  }
  model::Report report = report_with_stacks(std::move(stacks));
  for (model::LeakGroup& group : report.leak_groups) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    group.first_ns = (random >> 33) % 50'000 * 1'000'000;
    group.last_ns = *group.first_ns + (random >> 50) * 1'000'000;
    group.allocations = *group.count + (random >> 58);
    group.growth = random >> 63 ? "steady" : "growing";
    char fingerprint[17];
    std::snprintf(fingerprint, sizeof fingerprint, "%016llx",
                  static_cast<unsigned long long>(random));
    group.fingerprint = fingerprint;
  }
  PageStacks tables;
  PageJson page("{}");
  const IndexedReport indexed(std::move(report));
  StacksOfReport numbers(tables, indexed);
  page.add("report", page_report(indexed, "/tmp/app.json", numbers));
  tables.add_to(page);
  constexpr std::size_t largest_template = 150 << 10;
  EXPECT_LT(packed_data(page.text()).size() + largest_template, std::size_t{3} << 20);
}

TEST(Page, is_small_without_data_and_forbids_the_network) {
  const std::string_view page = page_template();
  if (page.empty()) GTEST_SKIP() << "cuwarden is built without the page";
  EXPECT_LT(page.size(), std::size_t{150} << 10);
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
  const std::size_t mark = page.find(page_data_mark);
  ASSERT_NE(mark, page.npos);
  EXPECT_EQ(page.find(page_data_mark, mark + 1), page.npos);
  EXPECT_NE(page.find("Leon Sorokin"), page.npos) << "the licence of uPlot is missing";
}

}  // namespace
}  // namespace cuwarden
