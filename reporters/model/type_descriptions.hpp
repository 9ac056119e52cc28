// Makes the descriptions of types (struct Type). Only types.cpp includes this, and files that have
// structs of their own to write or parse.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/merged_report.hpp"
#include "reporters/model/report.hpp"
#include "reporters/model/types.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// Holds the description of the type `Value`; read it by type_of().
template <class Value>
struct TypeOf {
  static const Type type;
};

// Functions and constants that make the descriptions of types (struct Type).
namespace description {

// True for std::optional.
template <class Value>
inline constexpr bool is_optional = false;
// True for all types std::optional.
template <class Value>
inline constexpr bool is_optional<std::optional<Value>> = true;

// Returns the descriptions of the struct's fields, as an array. `Values`: types of the fields, in
// the order of CUWARDEN_FIELDS. The parameter serves to deduce `Values`; it is not read, and may be
// null.
template <Object Struct, class... Values>
constexpr auto fields_of(std::tuple<Values...>*) {
  std::array<Field, sizeof...(Values)> fields{Field{{}, &TypeOf<Values>::type, false}...};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i].name = field_names<Struct>[i];
    fields[i].may_lack = may_lack<Struct>[i];
  }
  return fields;
}
template <Object Struct>
inline constexpr auto fields = fields_of<Struct>(
    static_cast<decltype(std::declval<Struct&>().pass_fields(TellTypes()))>(nullptr));

// Stores the addresses of the struct's fields in `addresses`. Serves as Type::find_fields.
template <Object Struct>
void find_fields(void* object, void** addresses) {
  static_cast<Struct*>(object)->pass_fields(
      [&](auto&... found) { ((*addresses++ = static_cast<void*>(&found)), ...); });
}
// Functions that serve as Type::elements and Type::renew of std::optional, and as Type::elements,
// Type::renew, Type::reserve and Type::add of lists. content() returns 1 if the optional has a
// value, and sets `first` to the value's address; otherwise it returns 0.
template <class Optional>
std::size_t content(void* value, void*& first) {
  auto& optional = *static_cast<Optional*>(value);
  if (optional) first = &*optional;
  return optional.has_value();
}
template <class Optional>
bool renew_optional(void* value, std::size_t count) {
  if (count > 1) return false;
  auto& optional = *static_cast<Optional*>(value);
  optional.reset();
  if (count == 1) optional.emplace();
  return true;
}
template <class List>
std::size_t elements(void* value, void*& first) {
  auto& list = *static_cast<List*>(value);
  first = list.data();
  return list.size();
}
template <class List>
bool renew(void* value, std::size_t count) {
  auto& list = *static_cast<List*>(value);
  if constexpr (requires { list.resize(count); })
    list = List(count);
  else if (count == list.size())
    list = List();
  return list.size() == count;
}
template <class List>
void reserve(void* value, std::size_t count) {
  static_cast<List*>(value)->reserve(count);
}
template <class List>
void* add(void* value) {
  return &static_cast<List*>(value)->emplace_back();
}

// Returns the description of the type `Value`.
template <class Value>
constexpr Type describe() {
  Type made{.size = sizeof(Value)};
  if constexpr (std::is_same_v<Value, bool>) {
    made.kind = TypeKind::flag;
  } else if constexpr (std::integral<Value>) {
    made.kind = TypeKind::number;
    made.is_signed = std::is_signed_v<Value>;
    made.is_id = std::is_same_v<Value, Id>;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    made.kind = TypeKind::text;
  } else if constexpr (std::is_same_v<Value, ProofValue>) {
    made.kind = TypeKind::proof_value;
  } else if constexpr (std::is_same_v<Value, Proof>) {
    made.kind = TypeKind::proof;
  } else if constexpr (is_optional<Value>) {
    made.kind = TypeKind::optional;
    made.element = &TypeOf<typename Value::value_type>::type;
    made.elements = content<Value>;
    made.renew = renew_optional<Value>;
  } else if constexpr (Object<Value>) {
    static_assert(field_count<Value> <= most_fields);
    made.fields = fields<Value>;
    made.find_fields = find_fields<Value>;
  } else {
    made.kind = TypeKind::list;
    made.element = &TypeOf<typename Value::value_type>::type;
    made.elements = elements<Value>;
    made.renew = renew<Value>;
    if constexpr (requires(Value & list) { list.resize(0); }) {
      made.reserve = reserve<Value>;
      made.add = add<Value>;
    }
  }
  return made;
}

}  // namespace description

template <class Value>
inline constexpr Type TypeOf<Value>::type = description::describe<Value>();

template <class Value>
const Type& type_of() {
  return TypeOf<Value>::type;
}

// Types of the model that files name, of which types.cpp has the descriptions. The description of a
// report, with all its tables, takes seconds to compile.
#define CUWARDEN_NAMED_TYPES(each)                                                                \
  each(Report) each(MergedReport) each(Process) each(Job) each(Incident) each(NamedStep) each(Id) \
      each(MaybeId) each(Text) each(std::string) each(bool) each(ProofValue) each(Proof)
#define CUWARDEN_DESCRIBED_ELSEWHERE(Described) extern template const Type& type_of<Described>();
CUWARDEN_NAMED_TYPES(CUWARDEN_DESCRIBED_ELSEWHERE)
#undef CUWARDEN_DESCRIBED_ELSEWHERE

}  // namespace cuwarden::model
