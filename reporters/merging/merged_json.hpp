// Writes and reads merged reports as JSON objects of the schema cuwarden.merged/1
// (merged.schema.json).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/files/output.hpp"
#include "reporters/model/merged_report.hpp"

namespace cuwarden {

// Writes the merged report as JSON to the output. Afterwards the caller calls Output::finish(),
// which writes the last bytes and returns failures of writing.
void write_merged_json(const model::MergedReport&, Output&);

// True if the text names a schema of merged reports, of any version. `content`: a JSON text, or its
// beginning up to the property "schema".
bool is_merged_report(std::string_view content);

// Parses the content of a merged report's file. Afterwards all ids are those of rows, which are
// numbered from 1. Returns null, with `error` set to one line that begins with `path`, if the
// content is no valid merged report of the schema cuwarden.merged/1. An id that names no row is not
// valid.
std::optional<model::MergedReport> parse_merged_report(std::string_view content,
                                                       const std::string& path, std::string& error);

}  // namespace cuwarden
