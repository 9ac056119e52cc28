// The structs of the report and report.schema.json describe the same fields.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "reporters/json/read_report.hpp"
#include "reporters/json/update.hpp"
#include "reporters/reports/report_file.hpp"
#include "reporters/verdicts/proofs.hpp"
#include "tests/unit/reporters/sample_ledger.hpp"

namespace cuwarden {
namespace {

using Names = std::set<std::string>;

Json schema() { return Json::parse(std::ifstream(REPORT_SCHEMA)); }

// Compares types of fields with their descriptions, and collects the differences.
class Comparison {
 public:
  explicit Comparison(const Json& schema) : schema_(schema) {}
  const std::vector<std::string>& differences() const { return differences_; }

  template <class Struct>
  void compare_object(const std::string& path, const Json& description) {
    const Json& properties = description.at("properties");
    Names listed, described;
    const auto required = description.value("required", Names());
    model::each_field(model_of<Struct>, [&](std::string_view name, const auto& field, auto at) {
      const std::string inner = path + "." + std::string(name);
      listed.emplace(name);
      if (!model::may_lack<Struct>[at] && !required.contains(std::string(name)))
        differ(inner + ": the model does not do without it, and the schema does not require it");
      if (properties.contains(name))
        compare<std::remove_cvref_t<decltype(field)>>(inner, properties.at(std::string(name)));
    });
    for (const auto& [name, property] : properties.items()) described.insert(name);
    for (const std::string& name : described)
      if (!listed.contains(name)) differ(path + "." + name + ": not in the model");
    for (const std::string& name : listed)
      if (!described.contains(name)) differ(path + "." + name + ": not in the schema");
  }

 private:
  template <class Struct>
  static inline const Struct model_of{};

  template <class Value>
  void compare(const std::string& path, const Json& description, bool may_be_null = false) {
    if constexpr (parsing::is_optional<Value>)
      return compare<typename Value::value_type>(path, description, true);
    const Names types = types_of(description);
    if (types.contains("null") && !may_be_null)
      differ(path + ": null in the schema, and never in the model");
    if (!types.contains(json_type<Value>()))
      differ(path + ": " + json_type<Value>() + " in the model, and not in the schema");
    if constexpr (model::Object<Value>)
      compare_object<Value>(path, description);
    else if constexpr (!parsing::is_optional<Value> &&
                       requires { requires model::Object<typename Value::value_type>; })
      compare_object<typename Value::value_type>(path + "[]", description.at("items"));
  }

  template <class Value>
  static std::string json_type() {
    if constexpr (model::Object<Value> || std::is_same_v<Value, model::Proof>)
      return "object";
    else if constexpr (std::is_same_v<Value, std::string>)
      return "string";
    else if constexpr (std::is_same_v<Value, bool>)
      return "boolean";
    else
      return std::is_integral_v<Value> ? "integer" : "array";
  }

  // The names of the types that values of a description may have.
  Names types_of(const Json& description) const {
    if (description.contains("$ref")) {
      const std::string name = description.at("$ref");
      return types_of(schema_.at("$defs").at(name.substr(name.rfind('/') + 1)));
    }
    Names types;
    if (description.contains("type")) {
      const Json& type = description.at("type");
      for (const Json& each : type.is_array() ? type : Json::array({type})) types.insert(each);
    }
    for (const Json& each : description.value("anyOf", Json::array())) types.merge(types_of(each));
    for (const Json& each : description.value("enum", Json::array()))
      types.insert(each.is_null() ? "null" : "string");
    if (description.contains("const"))
      types.insert(description.at("const").is_boolean() ? "boolean" : "string");
    return types;
  }

  void differ(std::string difference) { differences_.push_back(std::move(difference)); }

  const Json& schema_;
  std::vector<std::string> differences_;
};

std::vector<std::string> differences(const Json& schema) {
  Comparison comparison(schema);
  comparison.compare_object<model::Report>("", schema);
  return comparison.differences();
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
#define VERDICT(name, Proof, meaning)                           \
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
  WrittenReport() {
    test::FakeLedger ledger;
    test::fill_sample(ledger);
    std::string pattern = std::filesystem::temp_directory_path() / "model-XXXXXX";
    folder = mkdtemp(pattern.data());
    ReportFile file(folder + "/report.json");
    EXPECT_TRUE(file.write(ledger.reader(), {})) << file.error();
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
