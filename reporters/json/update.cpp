#include "reporters/json/update.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <variant>

namespace cuwarden {
namespace {

Json json_of(const model::ProofValue& value) {
  return std::visit(
      [](const auto& known) {
        if constexpr (std::is_same_v<decltype(known), const std::monostate&>)
          return Json();
        else
          return Json(known);
      },
      value);
}

// Returns the JSON of a flag, number, text, Proof or value of one.
Json json_of(model::AnyValue value) {
  switch (value.kind()) {
    case model::TypeKind::flag:
      return value.as<bool>();
    case model::TypeKind::number:
      if (value.type().is_signed) return static_cast<std::int64_t>(value.number());
      return value.number();
    case model::TypeKind::text:
      return value.as<std::string>();
    case model::TypeKind::proof_value:
      return json_of(value.as<model::ProofValue>());
    default: {
      Json object = Json::object();
      for (const auto& [name, figure] : value.as<model::Proof>()) object[name] = json_of(figure);
      return object;
    }
  }
}

// True if the value is null, false, 0 or empty.
bool is_default(model::AnyValue value) {
  bool all = true;
  switch (value.kind()) {
    case model::TypeKind::optional:
      return value.count() == 0;
    case model::TypeKind::list:
      if (value.type().add != nullptr) return value.count() == 0;
      value.each_element([&](model::AnyValue element) { all = all && is_default(element); });
      break;
    case model::TypeKind::object:
      value.each_field(
          [&](const model::Field&, model::AnyValue field) { all = all && is_default(field); });
      break;
    case model::TypeKind::flag:
      return !value.as<bool>();
    case model::TypeKind::number:
      return value.number() == 0;
    case model::TypeKind::text:
      return value.as<std::string>().empty();
    case model::TypeKind::proof:
      return value.as<model::Proof>().empty();
    case model::TypeKind::proof_value:
      return std::holds_alternative<std::monostate>(value.as<model::ProofValue>());
  }
  return all;
}

void update_object(Json& json, model::AnyValue object, Unlisted unlisted, RowDone done) {
  const bool is_new = !json.is_object();
  if (is_new) json = Json::object();
  const auto& fields = object.type().fields;
  if (unlisted == Unlisted::dropped)
    for (auto property = json.begin(); property != json.end();)
      property = std::ranges::count(fields, property.key(), &model::Field::name) == 0
                     ? json.erase(property)
                     : std::next(property);
  object.each_field([&](const model::Field& field, model::AnyValue value) {
    const auto found = json.find(field.name);
    if (found != json.end())
      update(*found, value, unlisted, done);
    else if (is_new || !is_default(value))
      update(json[std::string(field.name)], value, unlisted, done);
  });
}

void update_list(Json& json, model::AnyValue list, Unlisted unlisted, RowDone done) {
  if (!json.is_array()) json = Json::array();
  std::size_t row = 0;
  list.each_element([&](model::AnyValue value) {
    if (row == json.size()) json.push_back(nullptr);
    update(json[row++], value, unlisted);
    done();
  });
  json.erase(json.begin() + static_cast<std::ptrdiff_t>(row), json.end());
}

}  // namespace

void update(Json& json, model::AnyValue value, Unlisted unlisted, RowDone done) {
  switch (value.kind()) {
    case model::TypeKind::object:
      return update_object(json, value, unlisted, done);
    case model::TypeKind::list:
      return update_list(json, value, unlisted, done);
    case model::TypeKind::optional:
      if (const auto content = value.content()) return update(json, *content, unlisted, done);
      json = nullptr;
      return;
    default:
      if (Json made = json_of(value); json != made) json = std::move(made);
  }
}

}  // namespace cuwarden
