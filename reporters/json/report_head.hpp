// The beginning of a report: enough to tell which process it is about, without reading the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cuwarden {

// Facts about a report that are at its beginning, so that they are read without the rest.
struct ReportHead {
  std::string program;  // path of the executable; empty: unknown
  std::uint64_t pid = 0;
  std::string start;           // start of the process, in ISO 8601
  std::uint64_t end_ns = 0;    // end of the process, since its start; 0 if unknown
  bool running = false;        // true if the process went on after the report
  bool has_all_names = false;  // true if no function or line is missing
};

// Returns the end of the process in nanoseconds since 1970; null if `start` is no valid time.
std::optional<std::int64_t> end_realtime_ns(const ReportHead&);

// Reads the head of the report that is open as `descriptor`, at its start. Returns null if it is no
// report of this schema, or if its head is longer than 256 KiB.
std::optional<ReportHead> read_report_head(int descriptor);

}  // namespace cuwarden
