// Completes the names of a report that was written before: of frames without a function, a file or
// a line, by module, offset and build id.
#pragma once

#include "reporters/model/report.hpp"
#include "reporters/symbols/naming.hpp"

namespace cuwarden {

// True if the report says in `names` that names are missing. A report of an old version without
// `names` lacks names if a frame in a module has no function.
bool lacks_names(const model::Report&);

// Looks up the names of frames that lack them, and updates the report's `names` and `tool`. Returns
// true if the report has changed.
bool complete_names(model::Report&, Naming&);

}  // namespace cuwarden
