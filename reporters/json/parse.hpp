// Reads values of JSON into structs that list their fields.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// A JSON value whose objects keep the order of their properties.
using Json = nlohmann::ordered_json;
// A text that follows the name of a value and says what is wrong with it, such as ".bytes is no
// number"; null if the value is right. A text is made only for wrong values.
using Complaint = std::optional<std::string>;

template <class Value>
Complaint parse(const Json& json, Value& value);

namespace parsing {

template <class Value>
inline constexpr bool is_optional = false;
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

// Returns null if `good`; otherwise the complaint `what`.
inline Complaint unless(bool good, const char* what) {
  return good ? std::nullopt : Complaint(std::string(" is no ") + what);
}

template <class Struct>
Complaint parse_object(const Json& json, Struct& object) {
  if (!json.is_object()) return " is no object";
  Complaint wrong;
  auto expected = json.begin();  // fields mostly come in the order of their list
  model::each_field(object, [&](std::string_view name, auto& field, auto position) {
    if (wrong) return;
    const auto found =
        expected != json.end() && expected.key() == name ? expected : json.find(name);
    if (found == json.end()) {
      if (!model::may_lack<Struct>[position]) wrong = "." + std::string(name) + " is missing";
      return;
    }
    expected = std::next(found);
    if (const auto inner = parse(*found, field)) wrong = "." + std::string(name) + *inner;
  });
  return wrong;
}

template <class List>
Complaint parse_elements(const Json& json, List& list) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const auto wrong = parse(json[i], list[i])) return "[" + std::to_string(i) + "]" + *wrong;
  return std::nullopt;
}

inline Complaint parse_proof(const Json& json, model::Proof& proof) {
  if (!json.is_object()) return " is no object";
  for (const auto& [name, value] : json.items()) {
    model::ProofValue& known = proof.emplace_back(name, std::monostate()).second;
    if (value.is_number_unsigned()) known = value.get<std::uint64_t>();
    if (value.is_string()) known = value.get<std::string>();
  }
  return std::nullopt;
}

}  // namespace parsing

// Converts the JSON to `value`. Returns null if the JSON is of the value's type; otherwise the
// complaint.
template <class Value>
Complaint parse(const Json& json, Value& value) {
  using parsing::unless;
  if constexpr (model::Object<Value>) {
    return parsing::parse_object(json, value);
  } else if constexpr (std::is_same_v<Value, model::Proof>) {
    return parsing::parse_proof(json, value);
  } else if constexpr (parsing::is_optional<Value>) {
    return json.is_null() ? std::nullopt : parse(json, value.emplace());
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (json.is_string()) value = json.get_ref<const std::string&>();
    return unless(json.is_string(), "text");
  } else if constexpr (std::is_same_v<Value, bool>) {
    if (json.is_boolean()) value = json.get<bool>();
    return unless(json.is_boolean(), "true or false");
  } else if constexpr (std::is_integral_v<Value>) {
    const bool fits = json.is_number_unsigned()
                          ? std::in_range<Value>(json.get<std::uint64_t>())
                          : std::is_signed_v<Value> && json.is_number_integer();
    if (fits) value = json.get<Value>();
    return unless(fits, std::is_same_v<Value, model::Id> ? "id"
                        : std::is_signed_v<Value>        ? "whole number"
                                                         : "number from 0 on");
  } else {
    if (!json.is_array())
      return unless(false, model::Object<typename Value::value_type> ? "table" : "list");
    if constexpr (requires { value.resize(0); })
      value.resize(json.size());
    else if (json.size() != value.size())
      return " has not " + std::to_string(value.size()) + " entries";
    return parsing::parse_elements(json, value);
  }
}

}  // namespace cuwarden
