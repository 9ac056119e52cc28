#include "tools/cuwarden/top/top_json.hpp"

#include "reporters/json/json_stream.hpp"

namespace cuwarden {

void write_top_json(const TopAnswer& answer, bool with_stacks, Output& output) {
  JsonStream json(output);
  model::each_field(answer, [&](std::string_view name, const auto& part, auto) {
    if (name != "stacks" || with_stacks) json.part(name, part);
  });
  json.finish();
}

}  // namespace cuwarden
