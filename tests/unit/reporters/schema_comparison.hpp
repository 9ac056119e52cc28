// Compares structs that list their fields with the JSON Schema that describes them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reporters/json/parse.hpp"
#include "reporters/model/fields.hpp"

namespace cuwarden::test {

// Compares structs of the report with their descriptions in a JSON Schema, and collects the
// differences.
class SchemaComparison {
 public:
  using Names = std::set<std::string>;  // names of fields or of types

  // `schema`: the whole schema, in which references are looked up; outlives the object.
  explicit SchemaComparison(const Json& schema) : schema_(schema) {}
  // Returns a line for each difference that was found so far.
  const std::vector<std::string>& differences() const { return differences_; }

  // Compares the fields of `Struct` with the properties that the schema describes. `path`: position
  // of the object in the report, for messages; empty for the report itself. `description`: the part
  // of the schema that describes the object.
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
  // An object of the struct, to list its fields.
  template <class Struct>
  static inline const Struct model_of{};

  // Compares one field's type with its description in the schema. `path`: position of the field in
  // the report, for messages. `may_be_null`: true if the field may be null in the report.
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
      compare_object<typename Value::value_type>(path + "[]", resolved(description.at("items")));
  }

  // Returns the name of the JSON type of values of type `Value`.
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

  // Returns the part of the schema to which the description refers; the description itself if it
  // refers to none.
  const Json& resolved(const Json& description) const {
    if (!description.contains("$ref")) return description;
    const std::string name = description.at("$ref");
    return resolved(schema_.at("$defs").at(name.substr(name.rfind('/') + 1)));
  }

  // Returns the names of the JSON types that values of a description may have.
  Names types_of(const Json& reference) const {
    const Json& description = resolved(reference);
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

  // Adds a line to the differences.
  void differ(std::string difference) { differences_.push_back(std::move(difference)); }

  const Json& schema_;                    // the whole schema
  std::vector<std::string> differences_;  // a line for each difference
};

// Returns a line for each difference between the struct of a report and the JSON Schema that
// describes it, in both directions; none if they agree.
template <class Struct>
std::vector<std::string> differences_from_schema(const Json& schema) {
  SchemaComparison comparison(schema);
  comparison.compare_object<Struct>("", schema);
  return comparison.differences();
}

}  // namespace cuwarden::test
