#include "reporters/json/parse.hpp"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <variant>

namespace cuwarden {
namespace {

Complaint unless(bool good, const char* what) {
  return good ? std::nullopt : Complaint(std::string(" is no ") + what);
}

Complaint parse_json_number(const Json& json, const model::Type& type, void* value) {
  const std::size_t bits = 8 * type.size;
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - bits + (type.is_signed ? 1 : 0));
  std::uint64_t number = 0;
  bool fits = false;
  if (json.is_number_unsigned()) {
    number = json.get<std::uint64_t>();
    fits = number <= most;
  } else if (json.is_number_integer()) {
    const auto negative = json.get<std::int64_t>();
    number = static_cast<std::uint64_t>(negative);
    fits = type.is_signed && negative >= -static_cast<std::int64_t>(most) - 1;
  }
  // The lower bytes come first.
  if (fits) std::memcpy(value, &number, type.size);
  return unless(fits, type.is_id ? "id" : type.is_signed ? "whole number" : "number from 0 on");
}

model::ProofValue proof_value(const Json& json) {
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  if (json.is_string()) return json.get<std::string>();
  return std::monostate();
}

Complaint parse_object(const Json& json, const model::Type& type, void* object, RowDone done) {
  if (!json.is_object()) return " is no object";
  std::array<void*, model::most_fields> addresses;
  type.find_fields(object, addresses.data());
  auto expected = json.begin();  // fields mostly come in the order of their list
  for (std::size_t i = 0; i < type.fields.size(); ++i) {
    const model::Field& field = type.fields[i];
    const auto found =
        expected != json.end() && expected.key() == field.name ? expected : json.find(field.name);
    if (found == json.end()) {
      if (!field.may_lack) return "." + std::string(field.name) + " is missing";
      continue;
    }
    expected = std::next(found);
    if (const auto wrong = parse(*found, *field.type, addresses[i], done))
      return "." + std::string(field.name) + *wrong;
  }
  return std::nullopt;
}

Complaint parse_list(const Json& json, const model::Type& type, void* list, RowDone done) {
  if (!json.is_array())
    return type.element->kind == model::TypeKind::object ? " is no table" : " is no list";
  void* first = nullptr;
  if (!type.renew(list, json.size()))
    return " has not " + std::to_string(type.elements(list, first)) + " entries";
  type.elements(list, first);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (const auto wrong =
            parse(json[i], *type.element, static_cast<std::byte*>(first) + i * type.element->size))
      return "[" + std::to_string(i) + "]" + *wrong;
    done();
  }
  return std::nullopt;
}

}  // namespace

Complaint parse(const Json& json, const model::Type& type, void* value, RowDone done) {
  switch (type.kind) {
    case model::TypeKind::flag:
      if (json.is_boolean()) *static_cast<bool*>(value) = json.get<bool>();
      return unless(json.is_boolean(), "true or false");
    case model::TypeKind::number:
      return parse_json_number(json, type, value);
    case model::TypeKind::text:
      if (json.is_string()) *static_cast<std::string*>(value) = json.get_ref<const std::string&>();
      return unless(json.is_string(), "text");
    case model::TypeKind::proof_value:
      *static_cast<model::ProofValue*>(value) = proof_value(json);
      return std::nullopt;
    case model::TypeKind::proof:
      if (!json.is_object()) return " is no object";
      for (const auto& [name, member] : json.items())
        static_cast<model::Proof*>(value)->emplace_back(name, proof_value(member));
      return std::nullopt;
    case model::TypeKind::optional: {
      if (json.is_null()) return std::nullopt;
      void* content = nullptr;
      type.renew(value, 1);
      type.elements(value, content);
      return parse(json, *type.element, content, done);
    }
    case model::TypeKind::list:
      return parse_list(json, type, value, done);
    case model::TypeKind::object:
      return parse_object(json, type, value, done);
  }
  return std::nullopt;
}

}  // namespace cuwarden
