// Texts of moments of the run that a report is about.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// Returns words for a moment of the run, such as "at 14:03:11, 17.8 s into the run". If the moment
// is more than 12 hours after the process's start, the words have the date, too. If the time of the
// start is unknown: "after 17.8 s". `since_start_ns`: nanoseconds from the start to the moment.
std::string moment_of(const IndexedReport&, std::uint64_t since_start_ns);
// Returns a short text for a moment of the run: "17.8 s", the time since the process's start. If
// the run took a minute or more: "14:03:11 (17.8 s)". If the moment is more than 12 hours after the
// start, this has the date, too. `since_start_ns`: nanoseconds from the start to the moment.
std::string short_moment(const IndexedReport&, std::uint64_t since_start_ns);

}  // namespace cuwarden
