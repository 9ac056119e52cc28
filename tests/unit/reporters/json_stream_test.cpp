// JSON that is shown unchanged, by `snapshot --output -` or by cat, does not act on the terminal.
#include "reporters/json/json_stream.hpp"

#include <gtest/gtest.h>
#include <stdio.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "reporters/model/type_descriptions.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

template <class Value>
struct Row {
  Value field;
  CUWARDEN_FIELDS(field)
};

template <class Value = std::string>
std::string object_with(const std::type_identity_t<Value>& value) {
  FILE* const file = std::tmpfile();
  const auto output = std::make_unique<Output>(fileno(file));
  JsonStream json(*output);
  json.value("value", model::AnyValue::of(value));
  json.begin_table("rows");
  const Row<Value> row{value};
  json.row(model::AnyValue::of(row));
  json.end_table();
  json.finish();
  EXPECT_EQ(output->finish(), 0);
  std::string written(1u << 16, 0);
  std::rewind(file);
  written.resize(std::fread(written.data(), 1, written.size(), file));
  std::fclose(file);
  return written;
}

TEST(JsonStream, a_number_that_not_every_reader_can_hold_is_null) {
  constexpr std::int64_t largest = std::int64_t{1} << 53;
  for (const std::int64_t number : {largest, -largest}) {
    EXPECT_EQ(nlohmann::json::parse(object_with<std::int64_t>(number))["value"], number);
    EXPECT_TRUE(
        nlohmann::json::parse(object_with<std::int64_t>(number + (number < 0 ? -1 : 1)))["value"]
            .is_null());
  }
}

TEST(JsonStream, controls_are_escaped_and_read_back_as_they_were) {
  const std::string hostile = "a\033]0;t\007\n\x7f \u009b8m \u202e \u2028 \u00b5 \U0001f600";
  const std::string written = object_with(hostile);
  EXPECT_EQ(printable_lines(written, false), written);
  const auto read = nlohmann::json::parse(written);
  EXPECT_EQ(read["value"], hostile);
  EXPECT_EQ(read["rows"][0]["field"], hostile);
}

TEST(JsonStream, letters_of_other_scripts_stay_as_they_are) {
  EXPECT_NE(object_with("/home/\u4e2d\u6587").find("\u4e2d\u6587"), std::string::npos);
}

}  // namespace
}  // namespace cuwarden
