// The frames of a report's call stacks, as the functions of this folder judge them.
#pragma once

#include <string_view>

#include "reporters/model/report.hpp"
#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// Returns the frame of a report with its names. `module_path`: path of its module; empty: it has
// none. The texts belong to the arguments.
NamedFrame named_frame(const model::Frame&, std::string_view module_path);

// Sets, by the names of the report's frames, the library of each frame, and the fields `api`,
// `module`, `where` and `fingerprint` of the report's groups. A redacted report keeps the
// fingerprints that it has.
void label_report(model::Report&);
// Sets the libraries of the report's frames, and `where` of its groups, if the report is older than
// these fields: if no frame has a library. Sets `fingerprint` of groups that have none.
void label_old_report(model::Report&);

}  // namespace cuwarden
