#include "tools/cuwarden/top/top_json.hpp"

#include "reporters/json/json_stream.hpp"

namespace cuwarden {
namespace {

void write_part(JsonStream& json, std::string_view name, const std::string& value) {
  json.value(name, value);
}
template <class Row>
void write_part(JsonStream& json, std::string_view name, const std::vector<Row>& rows) {
  json.begin_table(name);
  for (const Row& row : rows) json.row(row);
  json.end_table();
}

}  // namespace

void write_top_json(const TopAnswer& answer, bool with_stacks, Output& output) {
  JsonStream json(output);
  model::each_field(answer, [&](std::string_view name, const auto& part, auto) {
    if (name != "stacks" || with_stacks) write_part(json, name, part);
  });
  json.finish();
}

}  // namespace cuwarden
