// for unknown values.
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "reporters/json/read_report.hpp"
#include "reporters/json/update.hpp"
#include "reporters/json/write_report.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"

namespace cuwarden {
namespace {

using test::FakeLedger;

nlohmann::json report_of(const FakeLedger& ledger, ReportOptions options = {}) {
  if (!options.end_ns) options.end_ns = 100'000'000'000;
  FILE* file = std::tmpfile();
  const auto output = std::make_unique<Output>(fileno(file));
  const ledger::Reader reader = ledger.reader();
  LedgerReport report(reader, options);
  write_report_json(report, *output);
  EXPECT_EQ(output->finish(), 0);
  std::string text(1u << 20, 0);
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return nlohmann::json::parse(text);
}

TEST(WritingAReport, tells_how_many_of_its_rows_were_written) {
  FakeLedger ledger;
  constexpr std::size_t stacks = 3000;
  for (std::size_t i = 0; i < stacks; ++i)
    ledger.add_record(ledger.add_group(ledger.add_stack({0x1000 + i}), {0}, Kind::device, {0}),
                      0x7f0000000000 + i * 4096, 512, 5);
  FILE* const file = std::tmpfile();
  const auto output = std::make_unique<Output>(fileno(file));
  const ledger::Reader reader = ledger.reader();
  ReportOptions options;
  options.end_ns = 100;
  LedgerReport report(reader, options);
  std::vector<std::size_t> told;
  write_report_json(report, *output, [&](std::size_t rows, std::size_t all) {
    EXPECT_GE(all, 3 * stacks) << "a leak group, a stack and a frame for each";
    told.push_back(rows);
    EXPECT_LE(rows, all);
  });
  std::fclose(file);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  ASSERT_GE(told.size(), 8u);
}

class ReportJson : public testing::Test {
 protected:
  ReportJson() { test::fill_sample(ledger); }
  nlohmann::json group(std::string_view kind, const nlohmann::json& released_by = nullptr) {
    const nlohmann::json report = report_of(ledger);
    for (const nlohmann::json& row : report["leak_groups"]) {
      if (row["kind"] == kind && row["released_by"] == released_by) return row;
    }
    return {};
  }
  FakeLedger ledger;
};

TEST_F(ReportJson, a_group_has_the_count_bytes_and_births_of_its_live_records) {
  const nlohmann::json row = group("device");
  EXPECT_EQ(row["count"], 6);
  EXPECT_EQ(row["bytes"], 6 << 20);
  EXPECT_EQ(row["first_ns"], 10'000'000'000);
  EXPECT_EQ(row["last_ns"], 85'000'000'000);
  EXPECT_EQ(row["example_address"], "0x7f1240000000");
  EXPECT_EQ(row["api"], "cuMemAlloc_v2");
  EXPECT_EQ(row["growth"], "growing");
  EXPECT_TRUE(row["unmapped_count"].is_null());
  EXPECT_TRUE(row["lost_count"].is_null());
}

TEST_F(ReportJson, memory_that_a_context_released_is_a_group_of_its_own_and_no_leak) {
  const nlohmann::json row = group("device", "context");
  EXPECT_EQ(row["count"], 2);
  EXPECT_EQ(row["bytes"], 8192);
  EXPECT_TRUE(row["growth"].is_null());
  const nlohmann::json leaks = report_of(ledger)["leaks"];
  EXPECT_EQ(leaks["released_by_context_bytes"], 8192);
  EXPECT_EQ(leaks["bytes"], (6 << 20) + (2 << 20) + 4096);
  EXPECT_EQ(leaks["count"], 8);
}

TEST_F(ReportJson, a_mapping_is_no_allocation_and_an_unmapped_handle_is_counted) {
  const nlohmann::json row = group("vmm");
  EXPECT_EQ(row["count"], 1);
  EXPECT_EQ(row["unmapped_count"], 1);
  ledger.records[ledger.records.size() - 2].mappings = 1;
  EXPECT_EQ(group("vmm")["unmapped_count"], 0);
}

TEST_F(ReportJson, groups_are_sorted_by_bytes) {
  std::uint64_t last = UINT64_MAX;
  const nlohmann::json report = report_of(ledger);
  for (const nlohmann::json& row : report["leak_groups"]) {
    EXPECT_LE(row["bytes"].get<std::uint64_t>(), last);
    last = row["bytes"];
  }
}

TEST_F(ReportJson, the_account_of_a_device_adds_up_to_what_it_uses) {
  const nlohmann::json report = report_of(ledger);
  std::int64_t sum = 0;
  for (const nlohmann::json& row : report["accounts"]) {
    EXPECT_EQ(row["device"], 0) << "device 1 was never read";
    sum += row["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(sum, report["devices"][0]["used_bytes"].get<std::int64_t>());
  EXPECT_TRUE(report["devices"][1]["used_bytes"].is_null());
  EXPECT_TRUE(report["devices"][1]["at"].is_null());
}

TEST_F(ReportJson, memory_that_no_allocation_call_explains_has_rows_of_its_own) {
  ledger.devices[0].implicit = {.used_after_first_context = 300u << 20,
                                .further_contexts = 200u << 20,
                                .modules = 30u << 20,
                                .local_memory = 40u << 20,
                                .heap = 5u << 20,
                                .streams = 6u << 20,
                                .largest_local = 4096};
  ledger.devices[0].largest_local_kernel = "_Z4deepPii";
  const auto account = [](const nlohmann::json& report) {
    std::map<std::string, std::int64_t> rows;
    for (const nlohmann::json& row : report["accounts"]) rows[row["item"]] = row["bytes"];
    return rows;
  };
  nlohmann::json report = report_of(ledger);
  auto rows = account(report);
  EXPECT_EQ(rows["context"], 500 << 20);
  EXPECT_EQ(rows["modules"], 30 << 20);
  EXPECT_EQ(rows["local_memory"], 40 << 20);
  EXPECT_EQ(rows["heap"], 5 << 20);
  EXPECT_EQ(rows["streams"], 6 << 20);
  std::int64_t sum = 0;
  for (const auto& [item, bytes] : rows) sum += bytes;
  EXPECT_EQ(sum, 600 << 20);
  EXPECT_EQ(report["devices"][0]["local_memory_kernel"], "deep(int*, int)");
  EXPECT_EQ(report["devices"][0]["local_memory_kernel_thread_bytes"], 4096);
  EXPECT_TRUE(report["devices"][1]["local_memory_kernel"].is_null());

  // This is more than any context takes, so other processes had it.
  ledger.devices[0].implicit.used_after_first_context = std::uint64_t{3} << 30;
  EXPECT_EQ(account(report_of(ledger))["context"], 200 << 20);
  // Numbers of a damaged ledger are left out of the account.
  ledger.devices[0].implicit.modules = UINT64_MAX;
  report = report_of(ledger);
  rows = account(report);
  EXPECT_EQ(rows.count("modules"), 0u);
  sum = 0;
  for (const auto& [item, bytes] : rows) sum += bytes;
  EXPECT_EQ(sum, 600 << 20);
}

TEST_F(ReportJson, every_id_that_is_used_has_a_row_and_no_other_row_is_written) {
  ledger.add_stack({0x1234});  // no group refers to it
  const nlohmann::json report = report_of(ledger);
  std::set<nlohmann::json> stacks, used_stacks, frames, used_frames, modules, used_modules;
  for (const nlohmann::json& row : report["stacks"]) {
    stacks.insert(row["id"]);
    used_frames.insert(row["frames"].begin(), row["frames"].end());
  }
  for (const nlohmann::json& row : report["leak_groups"]) used_stacks.insert(row["stack"]);
  for (const nlohmann::json& row : report["peak_holders"]) used_stacks.insert(row["stack"]);
  for (const nlohmann::json& row : report["frames"]) {
    frames.insert(row["id"]);
    if (!row["module"].is_null()) used_modules.insert(row["module"]);
  }
  for (const nlohmann::json& row : report["modules"]) modules.insert(row["id"]);
  EXPECT_EQ(stacks, used_stacks);
  EXPECT_EQ(frames, used_frames);
  EXPECT_EQ(modules, used_modules);
}

TEST_F(ReportJson, a_module_whose_allocations_were_all_freed_is_listed) {
  ledger.add_module("/opt/libclean.so", 0x7000'0000'0000, 4096);
  const nlohmann::json report = report_of(ledger);
  std::set<std::string> paths;
  for (const nlohmann::json& row : report["modules"]) paths.insert(row["path"]);
  EXPECT_TRUE(paths.contains("/opt/libclean.so"));
}

TEST_F(ReportJson, a_truncated_stack_is_marked_as_such) {
  const nlohmann::json row = group("vmm");
  const nlohmann::json report = report_of(ledger);
  for (const nlohmann::json& stack : report["stacks"]) {
    EXPECT_EQ(stack["truncated"], stack["id"] == row["stack"]);
  }
}

TEST_F(ReportJson, symbols_are_looked_up_when_asked_for) {
  const auto functions = [&](bool symbolise) {
    std::string text;
    ReportOptions options;
    options.symbolise = symbolise;
    const nlohmann::json report = report_of(ledger, options);
    for (const nlohmann::json& frame : report["frames"]) {
      if (frame["function"].is_string()) text += frame["function"].get<std::string>();
    }
    return text;
  };
  EXPECT_NE(functions(true).find("sample_program::refine"), std::string::npos);
  EXPECT_EQ(functions(false), "");
}

TEST_F(ReportJson, a_file_that_changed_since_is_not_symbolised) {
  const std::uint8_t other_build[] = {1, 2, 3};
  ledger.modules[0].build_id = other_build;
  const nlohmann::json report = report_of(ledger);
  EXPECT_EQ(report["tool"]["complete"], false);
  EXPECT_NE(report["tool"]["reasons"].dump().find("build id differs"), std::string::npos);
  for (const nlohmann::json& frame : report["frames"]) EXPECT_TRUE(frame["function"].is_null());
}

TEST_F(ReportJson, a_number_beyond_53_bits_is_unknown) {
  ledger.records[0].bytes = {std::uint64_t{1} << 60};
  EXPECT_TRUE(group("device")["bytes"].is_null());
}

TEST_F(ReportJson, a_name_that_is_not_utf_8_does_not_stop_the_report) {
  const nlohmann::json report = report_of(ledger);
  EXPECT_EQ(report["modules"].back()["path"], "/opt/vendor/libvendor \xef\xbf\xbd.so");
}

TEST_F(ReportJson, the_reasons_why_a_ledger_is_incomplete_are_sentences) {
  ledger.process.reasons = ledger::reason_ledger_full | ledger::reason_ledger_in_memory;
  ledger.process.unknown_frees = 3;
  ledger.unhooked_lookups = {{
      "cuMemAllocFuture",
      2,
  }};
  const nlohmann::json report = report_of(ledger);
  EXPECT_EQ(report["coverage"]["complete"], false);
  EXPECT_EQ(report["coverage"]["reasons"].size(), 2u);
  EXPECT_EQ(report["unhooked_lookups"][0]["name"], "cuMemAllocFuture");
  EXPECT_EQ(report["tool"]["reasons"].size(), 3u) << "two of the ledger, one missing library";
}

TEST_F(ReportJson, a_signal_from_outside_ends_the_process_without_a_status) {
  ReportOptions options;
  options.end_reason = ledger::EndReason::signal;
  options.signal = 9;
  const nlohmann::json process = report_of(ledger, options)["process"];
  EXPECT_EQ(process["end_reason"], "signal");
  EXPECT_EQ(process["signal"], 9);
  EXPECT_TRUE(process["exit_status"].is_null());
}

TEST_F(ReportJson, abort_is_signal_6) {
  ledger.process.end_reason = ledger::EndReason::abort;
  EXPECT_EQ(report_of(ledger)["process"]["signal"], 6);
}

TEST_F(ReportJson, only_hooks_that_were_called_are_listed) {
  const nlohmann::json hooks = report_of(ledger)["hooks"];
  EXPECT_EQ(hooks.size(), 3u);
  for (const nlohmann::json& hook : hooks) EXPECT_GT(hook["calls"].get<int>(), 0);
}

TEST_F(ReportJson, one_file_at_two_addresses_is_one_module) {
  const std::string path(ledger.process.program);
  const ledger::ModuleView first = ledger.modules[0];
  ledger.add_module(path, 0x600000000000, first.end - first.start).file = first.id;
  const StackId again =
      ledger.add_stack({0x600000000000 + (ledger.stacks[0].frames[0] - first.base)});
  const GroupId group = ledger.add_group(again, {0}, Kind::array, {0});
  ledger.add_record(group, 0x1, 10, 1);
  const nlohmann::json report = report_of(ledger);
  nlohmann::json frames[2];
  for (const nlohmann::json& stack : report["stacks"]) {
    if (stack["id"] == 1) frames[0] = stack["frames"];
    if (stack["id"] == again.value) frames[1] = stack["frames"];
  }
  EXPECT_EQ(frames[0], frames[1]);
}

TEST_F(ReportJson, a_report_is_read_row_by_row_as_it_is_read_at_once_also_with_later_properties) {
  std::string text = "{";
  std::size_t number = 0;
  const nlohmann::json report = report_of(ledger);
  for (const auto& [name, value] : report.items()) {
    // Objects and arrays of later versions, which have names of tables in them, and single values.
    text += "\"a" + std::to_string(number) + R"(": {"stacks": [{"id": 1}, [[]], 2], "b": {}}, )";
    text += "\"c" + std::to_string(number++) + R"(": [[1, {"frames": []}], "d"], )";
    text += "\"e" + std::to_string(number) + "\": -1.5, " + nlohmann::json(name).dump() + ": " +
            value.dump() + ", ";
  }
  text += R"("f": []})";
  std::string error;
  Json whole, of_rows, at_once;
  const auto by_row = parse_report(text, "r.json", error);
  const auto in_one = parse_report(text, "r.json", error, &whole);
  ASSERT_TRUE(by_row && in_one) << error;
  update(of_rows, *by_row, Unlisted::kept);
  update(at_once, *in_one, Unlisted::kept);
  EXPECT_FALSE(by_row->stacks.empty());
  EXPECT_EQ(of_rows.dump(), at_once.dump());
  EXPECT_TRUE(whole.contains("a0")) << "properties stay where the report is written again";
  EXPECT_FALSE(parse_report(text + "}", "r.json", error));
}

TEST(ReportOfNothing, an_empty_ledger_is_a_report_too) {
  const FakeLedger ledger;
  const nlohmann::json report = report_of(ledger);
  EXPECT_EQ(report["leaks"]["count"], 0);
  EXPECT_TRUE(report["leak_groups"].empty());
  EXPECT_TRUE(report["process"]["program"].is_null());
}

}  // namespace
}  // namespace cuwarden
