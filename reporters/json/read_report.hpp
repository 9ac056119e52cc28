// Reads reports back from their files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/json/parse.hpp"
#include "reporters/model/report.hpp"

namespace cuwarden {

// Reads and parses a report. Returns null, with `error` set to one line, if the file is no report
// of this schema or has more than `most_bytes`. `path`: "-" is standard input.
std::optional<model::Report> load_report(const std::string& path, std::string& error,
                                         std::size_t most_bytes = SIZE_MAX);

// Parses the content of a report's file. Returns null, with `error` set to one line that begins
// with `path`, if it is no report of this schema. `json`: gets all properties of the file, also
// unknown ones; may be null.
std::optional<model::Report> parse_report(std::string_view content, const std::string& path,
                                          std::string& error, Json* json = nullptr);

}  // namespace cuwarden
