// Puts the values of structs back into the JSON that they were parsed from.
#pragma once

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <variant>

#include "reporters/json/parse.hpp"

namespace cuwarden {

// Properties that no struct lists.
enum class Unlisted : bool { kept, dropped };

// Changes `json` so that it has the values of `value`. Properties with unchanged values stay as
// they are, and all keep their order. A missing property is added only if it has a value that is
// not null.
template <class Value>
void update(Json& json, const Value& value, Unlisted unlisted) {
  if constexpr (model::Object<Value>) {
    const bool is_new = !json.is_object();
    if (is_new) json = Json::object();
    if (unlisted == Unlisted::dropped)
      for (auto property = json.begin(); property != json.end();)
        property = std::ranges::count(model::field_names<Value>, property.key()) == 0
                       ? json.erase(property)
                       : std::next(property);
    model::each_field(value, [&](std::string_view name, const auto& field, auto) {
      using Field = std::remove_cvref_t<decltype(field)>;
      const auto found = json.find(name);
      if (found != json.end())
        update(*found, field, unlisted);
      else if (is_new || field != Field())
        update(json[std::string(name)], field, unlisted);
    });
  } else if constexpr (parsing::is_optional<Value>) {
    if (value)
      update(json, *value, unlisted);
    else
      json = nullptr;
  } else if constexpr (std::is_same_v<Value, model::Proof>) {
    json = Json::object();
    for (const auto& [name, figure] : value) {
      Json& property = json[name];
      std::visit(
          [&](const auto& known) {
            if constexpr (!std::is_same_v<decltype(known), const std::monostate&>) property = known;
          },
          figure);
    }
  } else if constexpr (!std::is_same_v<Value, std::string> && requires { value.begin(); }) {
    if (!json.is_array()) json = Json::array();
    for (std::size_t row = 0; row < value.size(); ++row) {
      if (row == json.size()) json.push_back(nullptr);
      update(json[row], value[row], unlisted);
    }
    json.erase(json.begin() + static_cast<std::ptrdiff_t>(value.size()), json.end());
  } else {
    Value present{};
    if (parse(json, present) || present != value) json = value;
  }
}

}  // namespace cuwarden
