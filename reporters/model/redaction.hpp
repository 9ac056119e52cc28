// Takes out of a report the parts that say whose it is, so that it can be given to a vendor: host,
// user, command line, folders and environment. Names of files and functions stay.
#pragma once

#include <string>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Removes from a report the host, user names, command line, folders of paths, environment
// variables, job id and device UUIDs. Sets the report's field `redacted`.
void redact(model::Report& report);

// Returns a text without folders of paths and without the names of users and hosts that occur in
// the report. redact() must not have been called for the report yet: it removes these names.
std::string redacted_text(const model::Report& report, std::string text);

}  // namespace cuwarden
