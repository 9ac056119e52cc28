// Reads the beginning of a report's file, which tells the process that the report is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cuwarden {

// The facts about a report and its process that stand at the beginning of the report's file.
struct ReportHead {
  std::string program;         // path of the executable; empty: unknown
  std::uint64_t pid = 0;       // process id of the process
  std::string start;           // start of the process, as ISO 8601 text in UTC
  std::uint64_t end_ns = 0;    // end of the process, in ns since its start; 0: unknown
  bool running = false;        // true if the process still ran when the report was made
  bool has_all_names = false;  // true if the report says that it lacks no function or source line
};

// Returns the end of the report's process in nanoseconds since 1970. Null if the head's start is no
// valid time of the years 1970 to 2200, or if its end is more than 36 years after the start.
std::optional<std::int64_t> end_realtime_ns(const ReportHead&);

// Reads the head of the report file that is open as `descriptor`. The descriptor's offset does not
// matter and does not change. Returns null if the file is no report of the schema
// cuwarden.report/1, or if the head is longer than 256 KiB.
std::optional<ReportHead> read_report_head(int descriptor);

}  // namespace cuwarden
