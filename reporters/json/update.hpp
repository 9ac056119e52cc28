// Puts the values of structs back into the JSON that they were parsed from.
#pragma once

#include "reporters/json/parse.hpp"

namespace cuwarden {

// Choice for the properties of a JSON object that are not fields of the struct whose values
// update() puts into it: to keep or to drop them. Fields are listed by CUWARDEN_FIELDS.
enum class Unlisted : bool { kept, dropped };

// Changes `json` so that it has the values of `value`. Properties with unchanged values stay as
// they are, and all keep their order. A property that an object lacks is added only if its value is
// not the default: null, false, 0 or empty. JSON of another type is replaced as a whole.
// `unlisted`: keeps or drops properties of `json` that are not fields of the struct.
void update(Json& json, model::AnyValue value, Unlisted unlisted);
// Changes `json` so that it has a value whose type is known, as the function above does.
template <class Value>
void update(Json& json, const Value& value, Unlisted unlisted) {
  update(json, model::AnyValue::of(value), unlisted);
}

}  // namespace cuwarden
