// Reads values of JSON into structs that list their fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// A JSON value whose objects keep the order of their properties.
using Json = nlohmann::ordered_json;
// The result of parsing: null if the JSON value has the right type and content; otherwise a text
// that says what is wrong. The text is to be put behind the value's name: " is no text" behind
// ".name".
using Complaint = std::optional<std::string>;

// Sets `value` from JSON. Returns null, or a text about what is wrong if the JSON is not of the
// value's type. Defined at the end of this file.
template <class Value>
Complaint parse(const Json& json, Value& value);
// Sets `value` if the JSON is a text, and returns null. Otherwise leaves `value` as it is, and
// returns a text about what is wrong.
Complaint parse(const Json& json, std::string& value);
// Sets `value` if the JSON is true or false, and returns null. Otherwise leaves `value` as it is,
// and returns a text about what is wrong.
Complaint parse(const Json& json, bool& value);
// Adds the members of a JSON object at the end of the Proof, by name, and returns null. A member
// that is neither text nor a whole number from 0 on becomes unknown (std::monostate). Returns a
// text about what is wrong, and adds nothing, if the JSON is no object.
Complaint parse(const Json& json, model::Proof& value);

namespace parsing {

// True if the type is a std::optional.
template <class Value>
inline constexpr bool is_optional = false;
// True for all types std::optional.
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

// A function that parses JSON for one type. `value` points to an object of this type, which the
// function sets. Returns null, or a text about what is wrong if the JSON is not of this type.
using Parse = Complaint (*)(const Json&, void* value);
// Parses JSON into the object of type Value to which `value` points. Returns null if the JSON is of
// this type; otherwise a text about what is wrong.
template <class Value>
Complaint parse_as(const Json& json, void* value) {
  return parse(json, *static_cast<Value*>(value));
}

// One field of a struct that is parsed from JSON, without the field's type. With this, the loops
// over fields are compiled once for all types: a report has three hundred fields.
struct Field {
  std::string_view name;  // name of the field in JSON
  bool may_lack = false;  // true if a report may lack the field
  void* value = nullptr;  // points to the field, which is set by parsing; not owned
  Parse parse = nullptr;  // function that parses the type of the field
};
// Parses the properties of a JSON object into the fields. A missing property leaves its field as it
// is if a report may lack the field. Returns null, or a text about the first wrong or missing
// field, or about JSON that is no object.
Complaint parse_fields(const Json&, std::span<const Field>);
// Parses the first `count` elements of a JSON array, each by the last parameter. `first` points to
// the value of element 0; the value of each further element lies `size` bytes behind the one
// before. Returns null, or a text about the first wrong element.
Complaint parse_elements(const Json&, std::size_t count, void* first, std::size_t size, Parse);
// Stores a whole number from `least` to `most` in `number`, a negative one as two's complement.
// Returns null, or a text if the JSON is no such number; then `number` is meaningless. `what`: noun
// for the number in that text, such as "id".
Complaint parse_number(const Json&, std::int64_t least, std::uint64_t most, const char* what,
                       std::uint64_t& number);

}  // namespace parsing

// Sets `value` from JSON. The caller passes a newly made `value`, because two kinds of fields keep
// their content: those that the JSON lacks and may lack, and optional ones that are null in the
// JSON. Returns null, or a text about what is wrong if the JSON is not of the value's type; `value`
// is then set in part.
template <class Value>
Complaint parse(const Json& json, Value& value) {
  if constexpr (model::Object<Value>) {
    std::array<parsing::Field, model::field_count<Value>> fields;
    model::each_field(value, [&](std::string_view name, auto& field, auto position) {
      fields[position] = {name, model::may_lack<Value>[position], &field,
                          parsing::parse_as<std::remove_reference_t<decltype(field)>>};
    });
    return parsing::parse_fields(json, fields);
  } else if constexpr (parsing::is_optional<Value>) {
    return json.is_null() ? std::nullopt : parse(json, value.emplace());
  } else if constexpr (std::is_integral_v<Value>) {
    const char* const what = std::is_same_v<Value, model::Id> ? "id"
                             : std::is_signed_v<Value>        ? "whole number"
                                                              : "number from 0 on";
    using Limits = std::numeric_limits<Value>;
    std::uint64_t number = 0;
    Complaint wrong = parsing::parse_number(
        json, std::int64_t{Limits::min()}, static_cast<std::uint64_t>(Limits::max()), what, number);
    if (!wrong) value = static_cast<Value>(number);
    return wrong;
  } else {
    using Element = typename Value::value_type;
    if (!json.is_array()) return model::Object<Element> ? " is no table" : " is no list";
    if constexpr (requires { value.resize(0); })
      value = Value(json.size());
    else if (json.size() != value.size())
      return " has not " + std::to_string(value.size()) + " entries";
    return parsing::parse_elements(json, value.size(), value.data(), sizeof(Element),
                                   parsing::parse_as<Element>);
  }
}

}  // namespace cuwarden
