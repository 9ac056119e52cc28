// Sets the fields of a report that follow from the names of its frames: libraries, locations,
// fingerprints.
#pragma once

#include <string_view>

#include "reporters/model/report.hpp"
#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// Returns the report's frame with its names, as users_frame() and KnownLibraries take it.
// `module_path`: path of the file of its module; empty: it has none. The texts belong to the
// arguments.
NamedFrame named_frame(const model::Frame&, std::string_view module_path);

// Sets all fields that follow from the names of the report's frames: the library of each frame, and
// `api`, `module`, `where` and `fingerprint` of the report's groups. Also applies the report's
// suppressions anew. A redacted report keeps its libraries, fingerprints and suppressions, since
// its names are not those of the process.
void label_report(model::Report&);
// Sets fields that a report of an earlier version of cuwarden lacks. If no frame has a library,
// sets the libraries of all frames, and `where` of the groups. Sets the fingerprints of groups that
// have none.
void label_old_report(model::Report&);

}  // namespace cuwarden
