// The merged report's JSON: it agrees with its schema, and is read as it was written.
#include "reporters/merging/merged_json.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "runtime_hooks/core/files/open_file.hpp"
#include "tests/unit/reporters/merging/job_fixture.hpp"
#include "tests/unit/reporters/schema_comparison.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace cuwarden {
namespace {

Json merged_schema() { return Json::parse(std::ifstream(MERGED_SCHEMA)); }

std::string written(const model::MergedReport& report) {
  const TemporaryFolder folder;
  const std::string path = std::string(folder.path()) + "/merged.json";
  const Descriptor file = make_file(AT_FDCWD, path.c_str(), O_WRONLY);
  const auto output = std::make_unique<Output>(file.number());
  write_merged_json(report, *output);
  EXPECT_EQ(output->finish(), 0);
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

model::MergedReport two_ranks() {
  std::vector<model::Report> ranks = {test::rank(0, "a", "GPU-1", 8),
                                      test::rank(1, "a", "GPU-1", 9)};
  for (model::Report& report : ranks) {
    test::refuse(report, 5);
    report.leak_groups[0].named_steps = {{"test_a", 1, report.leak_groups[0].bytes}};
  }
  test::hold(ranks[0], 101, 3);
  return test::merged(ranks);
}

std::string error_of(const Json& json) {
  std::string error;
  EXPECT_FALSE(parse_merged_report(json.dump(), "m.json", error));
  return error;
}

TEST(MergedSchema, has_the_fields_of_the_model_and_no_others) {
  for (const std::string& difference :
       test::differences_from_schema<model::MergedReport>(merged_schema()))
    ADD_FAILURE() << difference;
  EXPECT_EQ(merged_schema()["properties"]["schema"]["const"], model::merged_schema);
}

TEST(MergedJson, is_read_as_it_was_written) {
  const model::MergedReport report = two_ranks();
  const std::string content = written(report);
  EXPECT_TRUE(is_merged_report(content));
  std::string error;
  const auto parsed = parse_merged_report(content, "m.json", error);
  ASSERT_TRUE(parsed) << error;
  EXPECT_TRUE(*parsed == report);
  EXPECT_EQ(written(*parsed), content);
}

TEST(MergedJson, has_no_named_steps_if_an_earlier_version_wrote_it) {
  Json json = Json::parse(written(two_ranks()));
  EXPECT_EQ(json["leaks"][0]["named_steps"],
            Json::array({{{"name", "test_a"}, {"count", 2}, {"bytes", 17}}}));
  json["leaks"][0].erase("named_steps");
  for (Json& row : json["leaks_of_processes"]) row.erase("named_steps");
  std::string error;
  const auto parsed = parse_merged_report(json.dump(), "m.json", error);
  ASSERT_TRUE(parsed) << error;
  EXPECT_TRUE(parsed->leaks[0].named_steps.empty());
}

TEST(MergedJson, is_told_by_its_schema_wherever_that_stands) {
  EXPECT_TRUE(is_merged_report(R"({"a": "schema", "schema" : "cuwarden.merged/9"})"));
  EXPECT_FALSE(is_merged_report(R"({"schema": "cuwarden.report/1", "a": "cuwarden.merged/1"})"));
  EXPECT_FALSE(is_merged_report(R"({"a": "schema)"));
}

TEST(MergedJson, with_another_version_is_refused) {
  Json json = Json::parse(written(two_ranks()));
  json["schema"] = "cuwarden.merged/2";
  EXPECT_EQ(error_of(json),
            "m.json: its schema is cuwarden.merged/2, and this cuwarden reads cuwarden.merged/1; "
            "use the version that wrote it");
}

TEST(MergedJson, without_a_field_or_with_an_id_of_no_row_is_refused) {
  const Json whole = Json::parse(written(two_ranks()));
  Json json = whole;
  json["leaks"][0].erase("kind");
  EXPECT_NE(error_of(json).find("a damaged merged report (leaks[0].kind is missing)"),
            std::string::npos);
  const std::pair<const char*, const char*> references[] = {{"processes", "id"},
                                                            {"devices", "id"},
                                                            {"devices", "full_process"},
                                                            {"leaks", "id"},
                                                            {"leaks", "outlier"},
                                                            {"refusals", "process"},
                                                            {"refusals", "device"},
                                                            {"idle_devices", "shared_device"},
                                                            {"device_uses", "process"},
                                                            {"device_uses", "device"},
                                                            {"device_holders", "process"},
                                                            {"device_holders", "device"},
                                                            {"leaks_of_processes", "leak"},
                                                            {"leaks_of_processes", "process"}};
  for (const auto& [table, field] : references) {
    for (const int wrong : {0, 3}) {
      json = whole;
      ASSERT_FALSE(json[table].empty()) << table;
      json[table][0][field] = wrong;
      EXPECT_NE(error_of(json).find(std::string("an id in ") + table + " names no row"),
                std::string::npos)
          << table << "." << field;
    }
  }
  json = whole;
  json["first_refusal"]["followed_by"] = {3};
  EXPECT_NE(error_of(json).find("an id in first_refusal names no row"), std::string::npos);
}

}  // namespace
}  // namespace cuwarden
