// The structs of the report and report.schema.json describe the same fields.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "reporters/json/read_report.hpp"
#include "reporters/json/update.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/tables/ledger_report.hpp"
#include "reporters/verdicts/proofs.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"
#include "tests/unit/reporters/schema_comparison.hpp"

namespace cuwarden {
namespace {

using Names = std::set<std::string>;

Json schema() { return Json::parse(std::ifstream(REPORT_SCHEMA)); }

std::vector<std::string> differences(const Json& schema) {
  return test::differences_from_schema<model::Report>(schema);
}

TEST(Model, has_the_fields_of_the_schema_and_no_others) {
  for (const std::string& difference : differences(schema())) ADD_FAILURE() << difference;
}

TEST(Model, a_field_that_only_one_of_both_has_is_found) {
  Json changed = schema();
  Json& fields = changed["properties"]["leak_groups"]["items"]["properties"];
  fields["a_new_field"] = fields["bytes"];
  fields.erase("count");
  EXPECT_EQ(differences(changed),
            std::vector<std::string>({".leak_groups[].a_new_field: not in the model",
                                      ".leak_groups[].count: not in the schema"}));
  changed = schema();
  changed["properties"]["frames"]["items"]["properties"]["inlined"] = {{"type", "null"}};
  EXPECT_EQ(differences(changed).size(), 2u) << "neither null nor not a boolean";
}

TEST(Model, has_the_verdicts_of_the_schema_with_their_meanings_and_the_figures_of_their_proofs) {
  const Json incident = schema()["properties"]["incidents"]["items"]["properties"];
  Json rows = Json::array();
  Names figures, described;
#define VERDICT(name, Proof, holders, reserves, meaning)        \
  rows.push_back({{"const", #name}, {"description", meaning}}); \
  for (const std::string_view figure : model::field_names<verdicts::Proof>) figures.emplace(figure);
#include "reporters/verdicts/verdicts.def"
#undef VERDICT
  EXPECT_EQ(incident["verdict"]["anyOf"], rows);
  for (const auto& [name, figure] : incident["proof"]["properties"].items()) described.insert(name);
  EXPECT_EQ(described, figures);
}

class WrittenReport : public testing::Test {
 protected:
  // The sample's process has no end, which the options therefore give.
  static ReportOptions options() {
    ReportOptions made;
    made.end_ns = 100'000'000'000;
    return made;
  }
  WrittenReport() {
    test::FakeLedger ledger;
    test::fill_sample(ledger);
    std::string pattern = std::filesystem::temp_directory_path() / "model-XXXXXX";
    folder = mkdtemp(pattern.data());
    ReportFile file(folder + "/report.json");
    EXPECT_TRUE(file.write(ledger.reader(), options())) << file.error();
    std::ifstream written(file.path());
    content.assign(std::istreambuf_iterator<char>(written), {});
  }
  ~WrittenReport() override { std::filesystem::remove_all(folder); }

  std::string folder, content;
};

TEST_F(WrittenReport, has_all_parts_in_the_models_order) {
  std::vector<std::string> parts, listed;
  const Json json = Json::parse(content);
  for (const auto& [name, part] : json.items()) parts.push_back(name);
  for (const std::string_view name : model::field_names<model::Report>)
    if (name != "redacted") listed.emplace_back(name);
  EXPECT_EQ(parts, listed);
}

TEST_F(WrittenReport, is_the_same_after_it_was_parsed_and_put_back) {
  std::string error;
  Json json;
  const auto report = parse_report(content, "report", error, &json);
  ASSERT_TRUE(report) << error;
  const Json before = json;
  update(json, *report, Unlisted::kept);
  EXPECT_EQ(json, before);
  Json made;
  update(made, *report, Unlisted::kept);
  made.erase("redacted");
  EXPECT_EQ(made, before);
}

TEST_F(WrittenReport, may_be_older_than_the_stacks_of_slabs) {
  Json json = Json::parse(content);
  std::string error;
  const auto report = parse_report(content, "report", error);
  ASSERT_TRUE(report) << error;
  ASSERT_FALSE(report->slab_map.empty());
  EXPECT_EQ(report->slab_map[0].stacks, std::vector<model::Id>({1}));
  for (Json& slab : json["slab_map"]) slab.erase("stacks");
  json["incident_slab_map"] =
      Json::array({{{"incident", 1}, {"address", "0x0"}, {"live", 1}, {"live_bytes", 1}}});
  const auto older = parse_report(json.dump(), "report", error);
  ASSERT_TRUE(older) << error;
  EXPECT_EQ(older->slab_map.size(), report->slab_map.size());
  EXPECT_TRUE(older->slab_map[0].stacks.empty());
  EXPECT_TRUE(older->incident_slab_map.at(0).stacks.empty());
}

TEST_F(WrittenReport, is_the_same_whether_its_rows_are_parsed_one_by_one_or_all_together) {
  std::string error;
  Json json;
  const auto whole = parse_report(content, "report", error, &json);
  const auto by_rows = parse_report(content, "report", error);
  ASSERT_TRUE(whole && by_rows) << error;
  EXPECT_FALSE(by_rows->leak_groups.empty());
  EXPECT_TRUE(*whole == *by_rows);
}

TEST_F(WrittenReport, with_a_wrong_row_is_refused_with_the_same_words_however_it_is_parsed) {
  const Json whole = Json::parse(content);
  const auto errors_of = [&](const char* table, std::size_t row, const Json& wrong) {
    Json json = whole;
    json[table][row] = wrong;
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    std::string by_rows, together;
    Json ignored;
    EXPECT_FALSE(parse_report(text, "r", by_rows));
    EXPECT_FALSE(parse_report(text, "r", together, &ignored));
    EXPECT_EQ(by_rows, together);
    return by_rows;
  };
  EXPECT_NE(errors_of("stacks", 1, Json::object()).find("(stacks[1].id is missing)"),
            std::string::npos);
  for (const Json& wrong : {Json(1), Json("x"), Json::array({1}), Json()})
    EXPECT_NE(errors_of("leak_groups", 1, wrong).find("leak_groups[1] is no object"),
              std::string::npos);
}

TEST_F(WrittenReport, tells_how_much_of_it_was_read) {
  content.insert(content.size() - 2, 4 << 20, ' ');
  std::vector<std::size_t> told;
  std::string error;
  const auto tell = [&](std::size_t bytes, std::size_t all) {
    EXPECT_EQ(all, content.size());
    told.push_back(bytes);
  };
  ASSERT_TRUE(parse_report(content, "r", error, nullptr, tell)) << error;
  ASSERT_GE(told.size(), 8u);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_GT(told.back(), content.size() / 10 * 8);
  EXPECT_LE(told.back(), content.size());
}

TEST_F(WrittenReport, is_the_same_whether_it_is_read_from_the_ledger_or_parsed) {
  std::string error;
  auto parsed = parse_report(content, "report", error);
  ASSERT_TRUE(parsed) << error;
  test::FakeLedger ledger;
  test::fill_sample(ledger);
  const ledger::Reader reader = ledger.reader();
  const model::Report read = LedgerReport(reader, options()).whole();
  // The sample has a path that is not UTF-8, which JSON cannot hold as it is.
  const auto text = [](const model::Report& report) {
    Json json;
    update(json, report, Unlisted::dropped);
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  EXPECT_EQ(text(read), text(*parsed));
}

TEST_F(WrittenReport, keeps_what_a_later_version_added_unless_that_is_dropped) {
  Json json = Json::parse(content);
  json["later"] = {1};
  json["tool"]["later"] = 1;
  json["devices"][0]["later"] = nullptr;
  const Json before = json;
  std::string error;
  auto report = parse_report(json.dump(), "report", error);
  ASSERT_TRUE(report) << error;
  update(json, *report, Unlisted::kept);
  EXPECT_EQ(json, before);
  report->process.host = "elsewhere";
  update(json, *report, Unlisted::dropped);
  EXPECT_EQ(json.dump().find("later"), std::string::npos);
  EXPECT_EQ(json["process"]["host"], "elsewhere");
}

}  // namespace
}  // namespace cuwarden
