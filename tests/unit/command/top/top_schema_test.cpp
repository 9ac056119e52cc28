// The rows that `top --json` prints and top.schema.json describe the same fields.
#include <gtest/gtest.h>

#include <fstream>

#include "reporters/model/type_descriptions.hpp"
#include "tests/unit/reporters/schema_comparison.hpp"
#include "tools/cuwarden/top/top_json.hpp"

namespace cuwarden {
namespace {

Json schema() { return Json::parse(std::ifstream(TOP_SCHEMA)); }

TEST(TopSchema, has_the_fields_of_the_rows_and_no_others) {
  for (const std::string& difference : test::differences_from_schema<TopAnswer>(schema()))
    ADD_FAILURE() << difference;
  EXPECT_EQ(schema()["properties"]["schema"]["const"], top_schema);
}

TEST(TopSchema, a_field_that_only_one_of_both_has_is_found) {
  Json changed = schema();
  Json& fields = changed["properties"]["stacks"]["items"]["properties"];
  fields["a_new_field"] = fields["api"];
  fields.erase("where");
  EXPECT_EQ(test::differences_from_schema<TopAnswer>(changed),
            std::vector<std::string>(
                {".stacks[].a_new_field: not in the model", ".stacks[].where: not in the schema"}));
}

TEST(TopSchema, describes_each_field) {
  const Json properties = schema()["properties"];
  for (const auto& [name, part] : properties.items()) {
    EXPECT_TRUE(part.contains("description")) << name;
    const Json fields = part.value("items", Json::object()).value("properties", Json::object());
    for (const auto& [field, meaning] : fields.items())
      EXPECT_TRUE(meaning.contains("description")) << name << "." << field;
  }
}

}  // namespace
}  // namespace cuwarden
