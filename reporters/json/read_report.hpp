// Reads reports from their JSON files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "reporters/json/parse.hpp"
#include "reporters/model/report.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden {

// Returns the content of the file at `path`, which must begin as a JSON object does; "-" is
// standard input. Returns null, with `error` set to one line, if the file cannot be read or does
// not begin so. A file that is larger than 1 GiB, or than `most_bytes`, is refused in the same way.
std::optional<std::string> load_content(const std::string& path, std::string& error,
                                        std::size_t most_bytes = SIZE_MAX);

// Function that gets the progress of reading a text: number of bytes that were read so far, and
// number of all its bytes.
using ReadBytes = FunctionRef<void(std::size_t bytes, std::size_t all)>;

// Returns the path as messages show it: "standard input" for "-", two single quotes for an empty
// path, and any other path unchanged.
std::string name_of_input(const std::string& path);

// Reads and parses the report file at `path`; "-" is standard input. Returns null, with `error` set
// to one line, if the file cannot be read or is no valid report (parse_report()). A file that is
// larger than 1 GiB, or than `most_bytes`, is refused in the same way.
std::optional<model::Report> load_report(const std::string& path, std::string& error,
                                         std::size_t most_bytes = SIZE_MAX);

// Parses the content of a report's file. Returns null, with `error` set to one line that begins
// with `path`, if the content is no valid report of the schema cuwarden.report/1. Also returns null
// if the parsed JSON would take more memory than largest_tree. `json`: if not null, is set to the
// parsed JSON, also with properties that model::Report does not have; stays as it is after a
// failure. `read`: is called now and then with the number of bytes that were read so far and that
// of all; parsing goes on after all bytes were read. Fields that an old report lacks, such as
// `library` of frames and `fingerprint` of groups, are filled in (label_old_report()).
std::optional<model::Report> parse_report(
    std::string_view content, const std::string& path, std::string& error, Json* json = nullptr,
    ReadBytes read = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
