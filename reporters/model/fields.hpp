// Objects of the report are structs that list their fields once, by CUWARDEN_FIELDS. That list
// serves writing, parsing and the comparison with report.schema.json: a new field is its
// declaration and its name in the list. The names in the list are the names in JSON, in the order
// of writing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

// Lists the fields of the struct around this macro, in the order in which they are written to JSON,
// under the same names. Defines pass_fields(take), which calls take(field, field, ...) with
// references to all fields and returns its result. Tuples of fields would compile much more slowly.
// The functions are templates, so that a file pays for them only if it calls them.
#define CUWARDEN_FIELDS(...)                                   \
  static constexpr std::string_view field_list = #__VA_ARGS__; \
  template <class Take>                                        \
  decltype(auto) pass_fields(Take&& take) {                    \
    return take(__VA_ARGS__);                                  \
  }                                                            \
  template <class Take>                                        \
  decltype(auto) pass_fields(Take&& take) const {              \
    return take(__VA_ARGS__);                                  \
  }

// Lists fields of the struct around this macro that a report file may lack: reports of earlier
// versions do not have them, or no reader relies on them. A missing field keeps its initial value:
// null, false, 0 or empty.
#define CUWARDEN_MAY_LACK(...) static constexpr std::string_view lackable_list = #__VA_ARGS__;

namespace cuwarden::model {

// True if the type is a struct that lists its fields by CUWARDEN_FIELDS.
template <class Type>
concept Object = requires {
  Type::field_list;
};

// True if each field that the struct lists by CUWARDEN_FIELDS is equal in both objects.
template <Object Struct>
bool operator==(const Struct& left, const Struct& right) {
  return left.pass_fields([&](const auto&... lefts) {
    return right.pass_fields([&](const auto&... rights) { return (... && (lefts == rights)); });
  });
}

// Calls visit(name) for each name in `list`, whose names are separated by commas and blanks, such
// as "device, uuid".
template <class Visit>
constexpr void each_name(std::string_view list, const Visit& visit) {
  constexpr std::string_view blanks = " \n";
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, end);
    name.remove_prefix(std::min(name.find_first_not_of(blanks), name.size()));
    visit(name.substr(0, name.find_first_of(blanks)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

// Number of fields that the struct lists by CUWARDEN_FIELDS.
template <Object Struct>
inline constexpr std::size_t field_count = [] {
  std::size_t count = 0;
  each_name(Struct::field_list, [&](std::string_view) { ++count; });
  return count;
}();

// Names of the struct's fields, in the order of its CUWARDEN_FIELDS.
template <Object Struct>
inline constexpr auto field_names = [] {
  std::array<std::string_view, field_count<Struct>> names;
  std::size_t count = 0;
  each_name(Struct::field_list, [&](std::string_view name) { names[count++] = name; });
  return names;
}();

// Returns the index of a field in the struct's CUWARDEN_FIELDS, from 0. To be called in constant
// expressions: a name that is not in the list does not compile there.
template <Object Struct>
constexpr std::size_t field_position(std::string_view name) {
  std::size_t position = 0;
  while (field_names<Struct>[position] != name) ++position;
  return position;
}

// One element for each field of the struct, in the order of its CUWARDEN_FIELDS: true if a report
// file may lack the field.
template <Object Struct>
inline constexpr auto may_lack = [] {
  std::array<bool, field_count<Struct>> lackable{};
  if constexpr (requires { Struct::lackable_list; }) {
    each_name(Struct::lackable_list,
              [&](std::string_view name) { lackable[field_position<Struct>(name)] = true; });
  }
  return lackable;
}();

// Calls visit(name, field, position) for each field of the object. `position`: the field's index in
// the struct's CUWARDEN_FIELDS, from 0, as a std::integral_constant.
template <class Struct, class Visit>
void each_field(Struct& object, Visit&& visit) {
  using Plain = std::remove_const_t<Struct>;
  [&]<std::size_t... at>(std::index_sequence<at...>) {
    object.pass_fields([&](auto&... fields) {
      (visit(field_names<Plain>[at], fields, std::integral_constant<std::size_t, at>()), ...);
    });
  }
  (std::make_index_sequence<field_count<Plain>>());
}

// A string literal that can be a template argument: the name of a field, as in FieldType<Row,
// "device">.
template <std::size_t size>
struct FieldName {
  // Copies the string literal.
  consteval FieldName(const char (&text)[size]) { std::copy_n(text, size, letters); }
  // Returns the name without the null byte at its end.
  constexpr operator std::string_view() const { return {letters, size - 1}; }
  char letters[size];  // the name, with a null byte at its end
};

// A function object whose return type names the types of its arguments. FieldType passes it to
// pass_fields() (see CUWARDEN_FIELDS), to learn the types of a struct's fields. The call is never
// evaluated, so it has no definition.
struct TellTypes {
  // Names the types of the arguments in its return type; never called, only used in decltype.
  template <class... Fields>
  std::tuple<Fields...>* operator()(Fields&...) const;
};

// Type of the struct's field of this name, such as FieldType<Stack, "id">. The field has to be in
// the struct's CUWARDEN_FIELDS.
template <class Struct, FieldName name>
using FieldType = std::tuple_element_t<
    field_position<Struct>(name),
    std::remove_pointer_t<decltype(std::declval<Struct&>().pass_fields(TellTypes()))>>;

// Returns a reference to the object's field of this name, as in field<"id">(stack). The field has
// to be in the struct's CUWARDEN_FIELDS.
template <FieldName name, Object Struct>
FieldType<Struct, name>& field(Struct& object) {
  return object.pass_fields([](auto&... fields) -> FieldType<Struct, name>& {
    void* const all[] = {&fields...};
    return *static_cast<FieldType<Struct, name>*>(all[field_position<Struct>(name)]);
  });
}

}  // namespace cuwarden::model
