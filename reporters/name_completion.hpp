// Completes the names of a report that was written before: of frames without a function, a file or
// a line, by module, offset and build id.
#pragma once

#include <nlohmann/json.hpp>

#include "reporters/naming.hpp"

namespace cuwarden {

// True if the report says that names are missing. (Reports of before there was `names` say it of no
// part of theirs; frames without functions are taken for it.)
template <class Json>
bool lacks_names(const Json& report);

// Looks up the names of the frames that lack them, of a report whose shape has been checked, and
// says in `names` and `tool` what is missing now. True if the report has changed.
template <class Json>
bool complete_names(Json& report, Naming& naming);

extern template bool lacks_names(const nlohmann::json&);
extern template bool lacks_names(const nlohmann::ordered_json&);
extern template bool complete_names(nlohmann::json&, Naming&);
extern template bool complete_names(nlohmann::ordered_json&, Naming&);

}  // namespace cuwarden
