// Completes a report that was written without all names: looks up functions, source files and lines
// of its frames, by module, offset and build id.
#pragma once

#include "reporters/model/report.hpp"
#include "reporters/symbols/naming.hpp"

namespace cuwarden {

// True if names of functions, files or lines are missing from the report, as its field `names`
// says. A report of an old version has no such field: it lacks names if a frame in a module has no
// function.
bool lacks_names(const model::Report&);

// Looks up functions, files and lines of frames that lack them, and updates the report's statements
// about missing names (`names` and `tool`). Returns true if the report has changed. The Naming
// object then trusts a file without a build id only if it has not changed since the report's
// process started, and the process ran on this host.
bool complete_names(model::Report&, Naming&);

}  // namespace cuwarden
