// Puts the values of structs back into the JSON that they were parsed from.
#pragma once

#include "reporters/json/parse.hpp"
#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// Choice for update(): to keep or to drop the properties of a JSON object that are not among the
// fields (CUWARDEN_FIELDS) of the struct.
enum class Unlisted : bool { kept, dropped };

// Changes `json` so that it has the values of `value`. Properties with unchanged values stay as
// they are, and all keep their order. A property that an object lacks is added only if its value is
// not the default: null, false, 0 or empty. JSON of another type is replaced as a whole.
// `unlisted`: keeps or drops properties of `json` that are not fields of the struct. `done`: is
// called for each element of a list that does not lie in another list, such as a row of a report.
void update(
    Json& json, model::AnyValue value, Unlisted unlisted, RowDone done = [] {});
// Changes `json` so that it has the values of `value`, whose type is known to the compiler.
// `unlisted` and `done`: as for the function above.
template <class Value>
void update(
    Json& json, const Value& value, Unlisted unlisted, RowDone done = [] {}) {
  update(json, model::AnyValue::of(value), unlisted, done);
}

}  // namespace cuwarden
