// Reads the beginning of a report's file, which has the facts about the process that the report is
// about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuwarden {

// The facts about a report and its process that stand at the beginning of the report's file.
struct ReportHead {
  std::string program;    // path of the executable of the process; empty: unknown
  std::uint64_t pid = 0;  // id of the process that the report is about; 0: unknown
  std::string host;       // name of the host of the process; empty: unknown
  std::string start;      // start of the process, as ISO 8601 text in UTC; empty: unknown
  // End of the process, or moment of the report if the process still ran, in ns since the process's
  // start; 0: unknown.
  std::uint64_t end_ns = 0;
  bool running = false;  // true if the process still ran when the report was made
  // True if the report says that it lacks no names of functions and no source lines. False also if
  // an old report does not say.
  bool has_all_names = false;
};

// Returns the time at which the report's process ended, in nanoseconds since 1970. Returns the time
// of its start if the end is unknown (ReportHead::end_ns is 0). Null if the head's start is no
// valid time of the years 1970 to 2200, or if its end is more than 2^60 ns (36 years) after the
// start.
std::optional<std::int64_t> end_realtime_ns(const ReportHead&);

// Reads the head of a report file: the facts about the process at the file's beginning. The file is
// open as `descriptor`, whose offset does not matter and does not change. Returns null if the file
// cannot be read, if it is no report of the schema cuwarden.report/1, or if the head is longer than
// 256 KiB.
std::optional<ReportHead> read_report_head(int descriptor);
// Reads the head of a report whose text, or the beginning of it, is `text`. Returns null if the
// text is no report of the schema cuwarden.report/1, or ends before the head does.
std::optional<ReportHead> read_report_head(std::string_view text);

}  // namespace cuwarden
