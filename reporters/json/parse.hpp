// Reads values of JSON into structs that list their fields.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "reporters/model/row_progress.hpp"
#include "reporters/model/types.hpp"

namespace cuwarden {

// A JSON value whose objects keep the order of their properties.
using Json = nlohmann::ordered_json;
// The result of parsing: null if the JSON value has the right type and content; otherwise a text
// that says what is wrong. The text is to be put behind the value's name: " is no text" behind
// ".name".
using Complaint = std::optional<std::string>;

// Sets `value` from JSON. The caller passes a newly made `value`, because two kinds of fields keep
// their content: those that the JSON lacks and may lack, and optional ones that are null in the
// JSON. Returns null, or a text about what is wrong if the JSON is not of the value's type; `value`
// is then set in part. Members of a model::Proof that are neither text nor a whole number from 0 on
// become unknown. `value`: address of a value of this type. `done`: is called for each element of a
// list that does not lie in another list, such as a row of a report.
Complaint parse(
    const Json&, const model::Type&, void* value, RowDone done = [] {});
// Sets `value`, whose type is known to the compiler, from JSON. The caller passes a newly made
// value. Returns null, or a text about what is wrong if the JSON is not of the value's type;
// `value` is then set in part. `done`: as for the function above.
template <class Value>
Complaint parse(
    const Json& json, Value& value, RowDone done = [] {}) {
  return parse(json, model::type_of<Value>(), &value, done);
}

}  // namespace cuwarden
