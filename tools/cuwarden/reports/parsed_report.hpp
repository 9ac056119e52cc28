// Parses a report, and shows how far that is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Parses the JSON of a report. If it is no valid report, returns null and sets `error` to one line
// for the user, with the name. Shows a line of progress if parsing takes long. `name`: name of the
// file for messages.
std::optional<model::Report> parse_with_progress(std::string_view content, const std::string& name,
                                                 std::string& error);

}  // namespace cuwarden
