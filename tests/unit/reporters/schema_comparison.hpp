// Compares structs that list their fields with the JSON Schema that describes them.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reporters/json/parse.hpp"
#include "reporters/model/types.hpp"

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

  // Compares the fields of a struct, whose description in the model is `type`, with the properties
  // that the schema describes. `path`: position of the object in the report, for messages; empty
  // for the report itself. `description`: the part of the schema that describes the object.
  void compare_object(const std::string& path, const model::Type& type, const Json& description) {
    const Json& properties = description.at("properties");
    Names listed, described;
    const auto required = description.value("required", Names());
    for (const model::Field& field : type.fields) {
      const std::string name(field.name), inner = path + "." + name;
      listed.emplace(name);
      if (!field.may_lack && !required.contains(name))
        differ(inner + ": the model does not do without it, and the schema does not require it");
      if (properties.contains(name)) compare(inner, *field.type, properties.at(name));
    }
    for (const auto& [name, property] : properties.items()) described.insert(name);
    for (const std::string& name : described)
      if (!listed.contains(name)) differ(path + "." + name + ": not in the model");
    for (const std::string& name : listed)
      if (!described.contains(name)) differ(path + "." + name + ": not in the schema");
  }

 private:
  // Compares one field's type with its description in the schema. `path`: position of the field in
  // the report, for messages. `may_be_null`: true if the field may be null in the report.
  void compare(const std::string& path, const model::Type& type, const Json& description,
               bool may_be_null = false) {
    if (type.kind == model::TypeKind::optional)
      return compare(path, *type.element, description, true);
    const Names types = types_of(description);
    if (types.contains("null") && !may_be_null)
      differ(path + ": null in the schema, and never in the model");
    if (!types.contains(json_type(type)))
      differ(path + ": " + json_type(type) + " in the model, and not in the schema");
    if (type.kind == model::TypeKind::object)
      compare_object(path, type, resolved(description));
    else if (type.kind == model::TypeKind::list && type.element->kind == model::TypeKind::object)
      compare_object(path + "[]", *type.element, resolved(description.at("items")));
  }

  // Returns the name of the JSON type of values of a type of the model.
  static std::string json_type(const model::Type& type) {
    switch (type.kind) {
      case model::TypeKind::object:
      case model::TypeKind::proof:
        return "object";
      case model::TypeKind::text:
        return "string";
      case model::TypeKind::flag:
        return "boolean";
      case model::TypeKind::number:
        return "integer";
      default:
        return "array";
    }
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
  comparison.compare_object("", model::type_of<Struct>(), schema);
  return comparison.differences();
}

}  // namespace cuwarden::test
