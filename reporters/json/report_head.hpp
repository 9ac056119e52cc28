// The beginning of a report: enough to tell which process it is about, without reading the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cuwarden {

struct ReportHead {
  std::string program;  // its path; empty: unknown
  std::uint64_t pid = 0;
  std::string start;           // ISO 8601
  std::uint64_t end_ns = 0;    // since the start; 0 where it is unknown
  bool running = false;        // the report was made while its process went on
  bool has_all_names = false;  // the report says that no function or line is missing
};

// Since the epoch; null where it is not the text that a report has there.
std::optional<std::int64_t> end_realtime_ns(const ReportHead&);

// Null where the file, open as `descriptor` at its start, is no report of this schema, or its head
// is longer than 256 KiB.
std::optional<ReportHead> read_report_head(int descriptor);

}  // namespace cuwarden
