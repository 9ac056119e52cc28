#include "reporters/json/update.hpp"

#include <algorithm>
#include <iterator>
#include <variant>

namespace cuwarden {

void update(Json& json, const model::Proof& value, Unlisted) {
  json = Json::object();
  for (const auto& [name, figure] : value) {
    Json& property = json[name];
    std::visit(
        [&](const auto& known) {
          if constexpr (!std::is_same_v<decltype(known), const std::monostate&>) property = known;
        },
        figure);
  }
}

void updating::update_fields(Json& json, std::span<const Field> fields, Unlisted unlisted) {
  const bool is_new = !json.is_object();
  if (is_new) json = Json::object();
  if (unlisted == Unlisted::dropped)
    for (auto property = json.begin(); property != json.end();)
      property = std::ranges::count(fields, property.key(), &Field::name) == 0
                     ? json.erase(property)
                     : std::next(property);
  for (const Field& field : fields) {
    const auto found = json.find(field.name);
    if (found != json.end())
      field.update(*found, field.value, unlisted);
    else if (is_new || !field.is_default(field.value))
      field.update(json[std::string(field.name)], field.value, unlisted);
  }
}

}  // namespace cuwarden
