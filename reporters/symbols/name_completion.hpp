// Completes a report that was written without all names: looks up functions, source files and lines
// of its frames, by module, offset and build id.
#pragma once

#include <cstddef>

#include "reporters/model/report.hpp"
#include "reporters/symbols/naming.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// True if the report lacks names of functions, files or lines, as its field `names` says. An old
// report without this field lacks names if a frame in a module has no function.
bool lacks_names(const model::Report&);

// Looks up functions, files and lines for those frames of the report that have no source file. Adds
// frames of inlined functions, and labels the report anew by the names (label_report()). If the
// report has the field `names`, updates its statements about missing names, `names` and `tool`.
// Returns true if the report has changed.
// Restricts the Naming object for good: calls its trust_only_unchanged_since() with the start of
// the report's process, or with null if the process ran on another host or its start is unknown.
// Takes the object's reasons (take_reasons()).
// `done`: is called before each module that has frames without names. Its parameters are the number
// of such modules that are done, and the number of all.
bool complete_names(
    model::Report&, Naming&,
    FunctionRef<void(std::size_t, std::size_t)> done = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
