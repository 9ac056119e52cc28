// Completes a report that was written without all names: looks up functions, source files and lines
// of its frames, by module, offset and build id.
#pragma once

#include <cstddef>

#include "reporters/model/report.hpp"
#include "reporters/symbols/naming.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// True if names of functions, files or lines are missing from the report, as its field `names`
// says. A report of an old version has no such field: it lacks names if a frame in a module has no
// function.
bool lacks_names(const model::Report&);

// Looks up functions, files and lines for frames of the report that lack a source file. Adds frames
// of inlined functions, and does label_report() with the new names. If the report
// has the field `names`, updates its statements about missing names (`names` and `tool`). Returns
// true if the report has changed. Restricts the Naming object for good by
// trust_only_unchanged_since(): to the process's start, or to null if the process ran on another
// host or its start is unknown. Also takes the Naming object's reasons (take_reasons()).
// `done`: is called with the number of modules that were looked at, and that of all with frames
// without names, before each of them.
bool complete_names(
    model::Report&, Naming&,
    FunctionRef<void(std::size_t, std::size_t)> done = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
