// The text of a report, as people read it.
#include "reporters/text/text_report.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "reporters/json/read_report.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/words/wall_clock.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"
#include "tests/unit/reporters/text/has.hpp"

namespace cuwarden {
namespace {

class TextReport : public testing::Test {
 protected:
  TextReport() {
    test::fill_sample(ledger);
    std::string pattern = std::filesystem::temp_directory_path() / "text-report-XXXXXX";
    folder = mkdtemp(pattern.data());
  }
  ~TextReport() override { std::filesystem::remove_all(folder); }

  std::string text(const TextOptions& text_options = {}) {
    ReportFile file(folder + "/report.json");
    ReportOptions options;
    options.end_ns = 100'000'000'000;
    EXPECT_TRUE(file.write(ledger.reader(), options)) << file.error();
    std::string error;
    auto report = load_report(file.path(), error);
    EXPECT_TRUE(report) << error;
    return report ? text_report(IndexedReport(std::move(*report)), text_options) : "";
  }
  // Returns the text of the sample's report, with the given fields changed.
  std::string text_with(const nlohmann::json& changes) {
    return text_of_changed(report_with(changes));
  }
  nlohmann::json report_with(const nlohmann::json& changes) {
    text();
    auto report = nlohmann::json::parse(std::ifstream(folder + "/report.json"));
    report.merge_patch(changes);
    return report;
  }
  std::string text_of_changed(const nlohmann::json& report) {
    const std::string path = folder + "/changed.json";
    std::ofstream(path) << report;
    std::string error;
    auto changed = load_report(path, error);
    EXPECT_TRUE(changed) << error;
    return changed ? text_report(IndexedReport(std::move(*changed)), {}) : "";
  }
  std::string load_error(const std::string& content) {
    const std::string path = folder + "/bad.json";
    std::ofstream(path) << content;
    std::string error;
    EXPECT_FALSE(load_report(path, error));
    EXPECT_EQ(error.find('\n'), std::string::npos);
    return error;
  }

  test::FakeLedger ledger;
  std::string folder;
};

using test::has;

TEST_F(TextReport, the_text_says_that_an_allocator_handing_out_parts_cannot_be_looked_into) {
  EXPECT_EQ(text().find("MEMORY OF FRAMEWORKS"), std::string::npos);
  const std::pair<const char*, const char*> libraries[] = {
      {"PyTorch", "/env/torch/lib/libc10_cuda.so"},
      {"CuPy", "/env/site-packages/cupy/cuda/memory.cpython-312.so"}};
  for (const auto& [name, path] : libraries) {
    ledger.add_module(path, 0x7e0000000000, 0x1000);
    const GroupId cache =
        ledger.add_group(ledger.add_stack({0x7e0000000100}), {0}, Kind::device, {0});
    ledger.add_record(cache, 0x7f2000000000, 64u << 20, 1'000'000'000);
    const std::string said = text();
    EXPECT_NE(said.find("  " + std::string(name) + " (GPU 0): holds 64.0 MiB; "), std::string::npos)
        << said;
    ledger.modules.pop_back();
    ledger.groups.pop_back();
    ledger.records.pop_back();
  }
}

TEST_F(TextReport, the_text_names_the_process_its_end_and_its_leaks) {
  const std::string out = text();
  EXPECT_TRUE(has(out, "(pid 41233 on node-7) exited with status 0 after 1 min 40 s")) << out;
  EXPECT_TRUE(has(out, "LEAKS: 8.0 MiB in 8 allocations never freed")) << out;
  EXPECT_TRUE(has(out,
                  " 1. 6.0 MiB in 6 allocations · device memory (GPU 0) · cuMemAlloc_v2 · growing "
                  "by 3.6 MiB a minute"))
      << out;
  EXPECT_TRUE(has(out, "sample_program::refine(sample_program::Mesh&)")) << out;
  EXPECT_TRUE(has(out, "sample_program.cpp:")) << out;
  EXPECT_TRUE(has(out, "1 handle is unmapped but never released")) << out;
  EXPECT_TRUE(has(out, "8.0 KiB were never freed but went when their context")) << out;
  EXPECT_TRUE(has(out, "+0x1234")) << out;
  EXPECT_TRUE(has(out, "the outer frames were not recorded")) << out;
  EXPECT_TRUE(has(out, "incomplete: /opt/vendor/")) << out;
  EXPECT_FALSE(has(out, "\033")) << "no colour unless asked for";
}

TEST_F(TextReport, leaks_that_are_neither_lost_nor_grow_are_said_to_be_alive_at_the_exit) {
  const std::string alive = "None of it is known to be lost, and none of it grows: it was alive";
  EXPECT_FALSE(has(text(), alive)) << "one grows";
  auto report = report_with(nlohmann::json::object());
  for (auto& group : report["leak_groups"]) group["growth"] = "one_time";
  EXPECT_TRUE(has(text_of_changed(report), alive)) << text_of_changed(report);
  EXPECT_TRUE(has(text_of_changed(report), "LEAKS: ")) << "scripts look for the word";
  report["leak_groups"][0]["lost_count"] = 1;
  EXPECT_FALSE(has(text_of_changed(report), alive)) << text_of_changed(report);
}

TEST_F(TextReport, the_text_says_if_there_are_no_leaks) {
  ledger.records.clear();
  const std::string out = text();
  EXPECT_EQ(out.find("no leaks"), 0u) << out;
  EXPECT_EQ(out.find("no leaks", 1), std::string::npos) << "the line is not repeated";
  EXPECT_FALSE(has(out, "LEAKS")) << out;
}

// Calls at different offsets of one source line are made by turns, so that no offset grows by
// itself.
TEST_F(TextReport, groups_that_show_the_same_frames_are_one_and_grow_together) {
  auto report = report_with(nlohmann::json::object());
  const auto leak = report["leak_groups"][0];
  auto& groups = report["leak_groups"];
  groups.clear();
  const auto with_line = *std::ranges::find_if(
      report["frames"], [](const auto& frame) { return !frame["line"].is_null(); });
  const std::uint64_t second = 1'000'000'000;
  for (std::uint64_t i = 0; i < 4; ++i) {
    auto frame = with_line;
    frame["id"] = 1000 + i;
    frame["offset"] = 4096 + i;
    report["frames"].push_back(frame);
    report["stacks"].push_back({{"id", 1000 + i}, {"frames", {1000 + i}}, {"truncated", false}});
    groups.push_back(leak);
    groups.back()["stack"] = 1000 + i;
    groups.back()["count"] = 1;
    groups.back()["bytes"] = 1u << 20;
    groups.back()["first_ns"] = groups.back()["last_ns"] = (10 + i * 25) * second;
    groups.back()["growth"] = "one_time";
    groups.back()["growth_bytes_per_minute"] = nullptr;
    groups.back()["count_by_quarter"] = {1, 0, 0, 0};
  }
  const std::string out = text_of_changed(report);
  EXPECT_TRUE(has(out,
                  " 1. 4.0 MiB in 4 allocations · device memory (GPU 0) · cuMemAlloc_v2 · "
                  "growing by 2.7 MiB a minute"))
      << out;
  const auto clock = [&](std::uint64_t at) {
    return time_of_day(ledger.process.start_realtime_ns + static_cast<std::int64_t>(at));
  };
  EXPECT_TRUE(has(out, "made between " + clock(10 * second) + " (10.0 s) and " +
                           clock(85 * second) + " (1 min 25 s)"))
      << out;
  EXPECT_FALSE(has(out, " 2. ")) << out;

  report["frames"].back()["line"] = 4711;
  const std::string apart = text_of_changed(report);
  EXPECT_TRUE(has(apart, " 1. 3.0 MiB in 3 allocations")) << apart;
  EXPECT_TRUE(has(apart, " 2. 1.0 MiB in 1 allocation ")) << apart;
}

TEST_F(TextReport, a_cut_stack_names_the_setting_only_if_it_has_as_many_frames_as_that_allows) {
  auto report = report_with(nlohmann::json::object());
  const std::size_t frames = report["stacks"][0]["frames"].size();
  for (auto& stack : report["stacks"]) stack["truncated"] = false;
  report["stacks"][0]["truncated"] = true;
  const auto with_depth = [&](std::size_t depth) {
    for (auto& setting : report["settings"])
      if (setting["name"] == "CUWARDEN_STACK_DEPTH") setting["value"] = std::to_string(depth);
    return text_of_changed(report);
  };
  const std::string at_limit = with_depth(frames);
  EXPECT_TRUE(has(at_limit, "… the stack was cut here (CUWARDEN_STACK_DEPTH)")) << at_limit;
  const std::string below = with_depth(frames + 1);
  EXPECT_FALSE(has(below, "CUWARDEN_STACK_DEPTH)")) << below;
  EXPECT_TRUE(has(below, "… the outer frames were not recorded")) << below;
}

TEST_F(TextReport, leaks_are_summed_by_module_api_or_kind) {
  TextOptions options;
  options.by = GroupBy::kind;
  EXPECT_TRUE(has(text(options), "2.0 MiB  virtual memory (GPU 0)"));
  options.by = GroupBy::api;
  EXPECT_TRUE(has(text(options), "4.0 KiB  cudaMallocHost"));
  options.by = GroupBy::module;
  EXPECT_TRUE(has(text(options), "7 allocations from 2 stacks, 1 growing"));
}

TEST_F(TextReport, filters_say_how_much_they_leave_out) {
  TextOptions options;
  options.min_bytes = 1u << 20;
  EXPECT_TRUE(has(text(options), "left out by the filters: 4.0 KiB from 1 stack"));
  options.min_bytes = 0;
  options.module = "vendor";
  const std::string out = text(options);
  EXPECT_TRUE(has(out, " 1. 4.0 KiB in 1 allocation · pinned host memory · cudaMallocHost")) << out;
  EXPECT_TRUE(has(out, "left out by the filters: 8.0 MiB from 2 stacks")) << out;
}

TEST_F(TextReport, the_rest_beyond_the_top_is_summed) {
  TextOptions options;
  options.top = 1;
  EXPECT_TRUE(has(text(options), "2 more stacks with 2.0 MiB; --top 0 shows all"));
  options.top = 0;
  EXPECT_FALSE(has(text(options), "--top"));
}

TEST_F(TextReport, names_cannot_command_the_terminal) {
  ledger.process.host = "evil\033]0;x\007";
  EXPECT_FALSE(has(text(), "\033"));
}

TEST_F(TextReport, frames_inside_cudas_libraries_are_left_out) {
  ledger.modules[1].path = "/usr/lib/libcuda.so.1";
  const std::string out = text();
  EXPECT_FALSE(has(out, "libcuda.so.1+0x")) << out;
}

TEST_F(TextReport, colour_is_used_when_asked_for) {
  TextOptions options;
  options.colour = true;
  EXPECT_TRUE(has(text(options), "\033[1;31mLEAKS\033[0m"));
}

TEST_F(TextReport,
       where_others_hold_the_device_it_names_the_rank_and_the_device_behind_its_number) {
  nlohmann::json incident = {{"id", 1},
                             {"time_ns", 5},
                             {"api", "cudaMalloc"},
                             {"kind", "device"},
                             {"bytes", 1u << 30},
                             {"device", 0},
                             {"stack", nullptr},
                             {"outcome", "failed"},
                             {"verdict", "held_by_other_processes"},
                             {"repeats", 0},
                             {"proof", nlohmann::json::object()},
                             {"advice", "wait for them"}};
  const auto with = [&](nlohmann::json job = nlohmann::json::object()) {
    return text_with({{"incidents", nlohmann::json::array({incident})}, {"job", std::move(job)}});
  };
  const std::string uuid =
      "where GPU 0 is GPU-6b000000-0000-0000-0000-000000000001: if other ranks";
  EXPECT_TRUE(has(with(), "  slurm job 882113, rank 3, CUDA_VISIBLE_DEVICES=1\n"));
  EXPECT_TRUE(
      has(with(), "  this is rank 3 of slurm job 882113 with CUDA_VISIBLE_DEVICES=1, " + uuid));
  EXPECT_TRUE(has(with({{"visible_devices", nullptr}}),
                  "rank 3 of slurm job 882113, without CUDA_VISIBLE_DEVICES, " + uuid));
  incident["verdict"] = "device_full_own";
  EXPECT_FALSE(has(with(), "this is"));
}

// Two of three refused requests were rescued, so the program saw one failure. The text mentions no
// locked bytes, since there are none.
TEST_F(TextReport, the_text_lists_the_rungs_and_those_that_helped) {
  const nlohmann::json incident = {{"id", 1},
                                   {"api", "cudaMalloc"},
                                   {"asked_for", "memory"},
                                   {"kind", "device"},
                                   {"bytes", 3 << 20},
                                   {"device", 0},
                                   {"time_ns", 5'000'000'000},
                                   {"repeats", 2},
                                   {"last_bytes", 3 << 20},
                                   {"last_ns", 9'000'000'000},
                                   {"recovered_count", 0},
                                   {"rescued_count", 2},
                                   {"rescued_by", "wait"},
                                   {"outcome", "failed"},
                                   {"result", "CUDA_ERROR_OUT_OF_MEMORY"},
                                   {"verdict", "slab_fragmentation"},
                                   {"proof", nlohmann::json::object()},
                                   {"advice", ""},
                                   {"stack", 1}};
  const auto rung = [](int order, const char* name, const char* outcome, int ns) {
    return nlohmann::json{{"incident", 1},      {"order", order},    {"rung", name},
                          {"outcome", outcome}, {"duration_ns", ns}, {"reclaimer", nullptr}};
  };
  const nlohmann::json holder = {{"incident", 1}, {"kind", "device"}, {"bytes", 1 << 20},
                                 {"count", 4},    {"stack", 1},       {"slab_locked_bytes", 0}};
  const std::string shown =
      text_with({{"incidents", {incident}},
                 {"incident_holders", {holder}},
                 {"rungs",
                  {rung(1, "retry", "no_memory", 2000), rung(2, "trim", "nothing_to_do", 100),
                   rung(3, "wait", "timed_out", 500'000'000)}}});
  const std::string clock = time_of_day(ledger.process.start_realtime_ns + 5'000'000'000);
  EXPECT_TRUE(shown.starts_with("OUT OF MEMORY at " + clock +
                                ", 5.0 s into the run: cudaMalloc of 3.0 MiB (GPU 0) failed at "))
      << shown;
  EXPECT_TRUE(has(shown, "the attempts took 500.0 ms\n"));
  EXPECT_TRUE(
      has(shown, "2 of them were served all the same, mostly by wait; the program saw 1 fail"));
  EXPECT_TRUE(
      has(shown,
          "tried for the first: retry 2.0 µs (no memory) · trim (nothing to do) · wait 500.0 ms "
          "(timed out)\n"));
  EXPECT_TRUE(has(shown, "top holders at that moment"));
  EXPECT_FALSE(has(shown, "locks"));
}

TEST_F(TextReport, visible_devices_are_named_without_a_job_too) {
  ledger.environment = {{"CUDA_VISIBLE_DEVICES", "1,0", true}};
  EXPECT_TRUE(has(text(), "\n  CUDA_VISIBLE_DEVICES=1,0\n"));
}

TEST_F(TextReport, allocations_and_frees_are_counted_at_their_call_sites) {
  const auto with = [&](nlohmann::json holder) {
    return text_with({{"totals",
                       {{{"kind", "pinned"},
                         {"device", nullptr},
                         {"allocations", 900},
                         {"failures", 0},
                         {"live_count", 0},
                         {"live_bytes", 0},
                         {"peak_count", 1},
                         {"peak_bytes", 4u << 20},
                         {"peak_time_ns", 5'000'000'000}}}},
                      {"peak_holders", nlohmann::json::array({std::move(holder)})}});
  };
  nlohmann::json holder = {{"device", nullptr},
                           {"kind", "pinned"},
                           {"stack", nullptr},
                           {"count", 1},
                           {"bytes", 4u << 20}};
  const auto at = [&](int seconds) {
    const std::int64_t ns = seconds * std::int64_t{1'000'000'000};
    return time_of_day(ledger.process.start_realtime_ns + ns) + " (" + std::to_string(seconds) +
           ".0 s)";
  };
  EXPECT_TRUE(has(with(holder), "4.0 MiB in 1 after " + at(5) + ", 900 made\n")) << with(holder);
  EXPECT_TRUE(has(with(holder), "4.0 MiB in 1 allocation · pinned host memory\n"))
      << "an earlier version's";
  holder.update({{"allocations", 900}, {"first_ns", 2'000'000'000}, {"last_ns", 8'000'000'000}});
  EXPECT_TRUE(has(with(holder), "· pinned host memory · 900 made here between " + at(2) + " and " +
                                    at(8) + "\n"));
  holder["allocations"] = 1;
  EXPECT_FALSE(has(with(holder), "made here"));
}

TEST_F(TextReport, a_file_that_is_no_report_gives_one_line_of_error) {
  EXPECT_TRUE(has(load_error(""), "the file is empty"));
  EXPECT_TRUE(has(load_error("{\"schema\": "), "not JSON"));
  EXPECT_TRUE(has(load_error("[1, 2]"), "not a cuwarden report"));
  EXPECT_TRUE(has(load_error("{\"schema\": \"cuwarden.report/7\"}"), "cuwarden.report/7"));
  EXPECT_TRUE(has(load_error("{\"schema\": \"cuwarden.report/1\", \"stacks\": [{}]}"), "damaged"));
  EXPECT_TRUE(has(load_error("{\"schema\": \"cuwarden.report/1\", \"frames\": [{\"id\": 1e300}]}"),
                  "damaged"));
  std::string error;
  EXPECT_FALSE(load_report(folder, error));
  EXPECT_TRUE(has(error, "it is a folder"));
}

}  // namespace
}  // namespace cuwarden
