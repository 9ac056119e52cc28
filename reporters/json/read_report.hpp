// Reads reports back from their files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/json/parse.hpp"
#include "reporters/model/report.hpp"

namespace cuwarden {

// Null with `error` set to one line when the file is no report of this schema. The path may be "-",
// for standard input. No more than `most_bytes` are read.
std::optional<model::Report> load_report(const std::string& path, std::string& error,
                                         std::size_t most_bytes = SIZE_MAX);

// Parses the content of a file, which the error line calls `path`. `json`, unless null, is given
// the properties as they are in the file.
std::optional<model::Report> parse_report(std::string_view content, const std::string& path,
                                          std::string& error, Json* json = nullptr);

}  // namespace cuwarden
