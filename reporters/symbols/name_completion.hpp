// Completes the names of a report that was written before: of frames without a function, a file or
// a line, by module, offset and build id.
#pragma once

#include "reporters/model/report.hpp"
#include "reporters/symbols/naming.hpp"

namespace cuwarden {

// True if the report says that names are missing. Reports of before there was `names` do not say
// it; they lack names where frames in modules lack functions.
bool lacks_names(const model::Report&);

// Looks up the names of the frames that lack them, and says in `names` and `tool` what is missing
// now. True if the report has changed.
bool complete_names(model::Report&, Naming&);

}  // namespace cuwarden
