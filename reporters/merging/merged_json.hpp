// Writes and reads merged reports as JSON objects of the schema cuwarden.merged/1
// (merged.schema.json).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/files/output.hpp"
#include "reporters/json/read_report.hpp"
#include "reporters/model/merged_report.hpp"

namespace cuwarden {

// Writes the merged report as JSON to the output. The caller calls Output::finish() afterwards,
// which writes the last bytes and returns failures of writing.
void write_merged_json(const model::MergedReport&, Output&);

// True if the text is that of a merged report, of any version of the schema. `content`: a JSON
// text, or its beginning up to the property "schema".
bool is_merged_report(std::string_view content);

// Parses the content of a merged report's file. In the result, every id is the number of a row,
// from 1. Returns null, with `error` set to one line that begins with `path`, if the content is no
// valid merged report of the schema cuwarden.merged/1. An id that names no row makes it invalid.
// `read`: is called now and then with the number of bytes that were read so far and that of all;
// parsing goes on after all bytes were read.
std::optional<model::MergedReport> parse_merged_report(
    std::string_view content, const std::string& path, std::string& error,
    ReadBytes read = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
