// Points in time, as reports store them and as people read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cuwarden {

// Parses the text of a point in time in ISO 8601, in UTC, with one to nine digits behind the
// second, which are its decimal fraction: "2026-11-26T04:28:16.977002377Z". cuwarden writes nine,
// programs that change a report may write fewer. Returns nanoseconds since 1970; null for any other
// text, and for years before 1970 or after 2200.
std::optional<std::int64_t> parse_iso_8601(std::string_view text);

// Returns the time of day in the time zone of this machine, such as "14:03:11", for a point in time
// in nanoseconds since 1970. A leading date ("2026-11-26 14:03:11") is added if `with_date` is
// true.
std::string time_of_day(std::int64_t realtime_ns, bool with_date = false);

}  // namespace cuwarden
