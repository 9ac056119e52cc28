// Parses a report, and shows how far that is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/model/report.hpp"

namespace cuwarden {

// Returns the report, or null with `error` set, as parse_report() does. Shows a line of progress
// if that takes long. `name`: name of the file for messages.
std::optional<model::Report> parse_with_progress(std::string_view content, const std::string& name,
                                                 std::string& error);

}  // namespace cuwarden
