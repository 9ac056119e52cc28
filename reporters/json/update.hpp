// Puts the values of structs back into the JSON that they were parsed from.
#pragma once

#include <array>
#include <span>
#include <type_traits>

#include "reporters/json/parse.hpp"

namespace cuwarden {

// Choice for the properties of a JSON object that are not fields of the struct whose values
// update() puts into it: to keep or to drop them. Fields are listed by CUWARDEN_FIELDS.
enum class Unlisted : bool { kept, dropped };

// Changes `json` so that it has the values of `value`. Defined at the end of this file. `unlisted`:
// keeps or drops properties of `json` that are not fields of the struct.
template <class Value>
void update(Json& json, const Value& value, Unlisted unlisted);
// Replaces `json` by an object with the numbers and texts of the Proof by name; unknown ones become
// null. `unlisted` has no effect.
void update(Json& json, const model::Proof& value, Unlisted unlisted);

namespace updating {

// One field of a struct whose values are put into JSON, without the field's type.
struct Field {
  std::string_view name;        // name of the field in JSON
  const void* value = nullptr;  // points to the field; not owned
  // Function that puts a value of the field's type into JSON.
  void (*update)(Json&, const void* value, Unlisted) = nullptr;
  // Function that returns true if a value of the field's type is the default: null, false, 0 or
  // empty.
  bool (*is_default)(const void* value) = nullptr;
};
// Sets the fields of a struct in a JSON object. A field that the object lacks is added only if its
// value is not the default: null, false, 0 or empty. JSON that is no object is replaced by an
// object with all fields. `Unlisted`: keeps or drops the object's properties that are not among the
// fields.
void update_fields(Json&, std::span<const Field>, Unlisted);

// Puts the object of type Value to which `value` points into the JSON, as update() does.
template <class Value>
void update_as(Json& json, const void* value, Unlisted unlisted) {
  update(json, *static_cast<const Value*>(value), unlisted);
}
// True if the object of type Value to which `value` points is the default: null, false, 0 or empty.
template <class Value>
bool is_default(const void* value) {
  return *static_cast<const Value*>(value) == Value();
}

}  // namespace updating

// Changes `json` so that it has the values of `value`. Properties with unchanged values stay as
// they are, and all keep their order. A property that an object lacks is added only if its value is
// not the default: null, false, 0 or empty. JSON of another type is replaced as a whole.
// `unlisted`: keeps or drops properties of `json` that are not fields of the struct.
template <class Value>
void update(Json& json, const Value& value, Unlisted unlisted) {
  if constexpr (model::Object<Value>) {
    std::array<updating::Field, model::field_count<Value>> fields;
    model::each_field(value, [&](std::string_view name, const auto& field, auto position) {
      using Type = std::remove_cvref_t<decltype(field)>;
      fields[position] = {name, &field, updating::update_as<Type>, updating::is_default<Type>};
    });
    updating::update_fields(json, fields, unlisted);
  } else if constexpr (parsing::is_optional<Value>) {
    if (value)
      update(json, *value, unlisted);
    else
      json = nullptr;
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
