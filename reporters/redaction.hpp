// Takes out of a report what says whose it is: host, user, command line, folders and environment.
// The rest, with the names of files and functions, is what a vendor needs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace cuwarden {

// Of a report whose shape has been checked. The result is a report of the same schema, marked by
// `redacted`.
void redact(nlohmann::ordered_json& report);

// A text beside a report that is not redacted yet, as a sentence in it would be redacted.
std::string redacted_text(const nlohmann::ordered_json& report, const std::string& text);

}  // namespace cuwarden
