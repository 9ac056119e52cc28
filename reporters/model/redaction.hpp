// Takes out of a report what says whose it is: host, user, command line, folders and environment.
// The rest, with the names of files and functions, is what a vendor needs.
#pragma once

#include <string>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Redacts a report, and marks it by `redacted`.
void redact(model::Report& report);

// Redacts a text as a sentence of the report, which is not redacted yet.
std::string redacted_text(const model::Report& report, std::string text);

}  // namespace cuwarden
