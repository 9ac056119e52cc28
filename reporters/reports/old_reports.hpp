// Removes the oldest reports of a program, so that as many stay as CUWARDEN_REPORT_KEEP says.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "reporters/reports/report_policy.hpp"

namespace cuwarden {

// Longest time for removing old reports in a process that ends.
inline constexpr std::chrono::milliseconds longest_removal_at_exit{200};
// Longest time for removing old reports in the `cuwarden` command.
inline constexpr std::chrono::milliseconds longest_removal_afterwards{5000};

// Tells remove_old_reports() if the report that was just written may be removed, too. `stays`: the
// report stays, since a user asked for it. `may_go`: it is removed if enough other reports are
// newer.
enum class OwnReport { stays, may_go };

// Removes old reports of a program. `own`: path of the report that was just written; only its
// folder is searched. `program`: path of the executable; if it is empty, nothing is removed. The
// reports of as many processes as ReportPolicy::keep says stay, those that ended last; if it is 0,
// all stay. OwnReport says if the report at `own` stays anyway, as one of them.
//
// A file is removed only if it is a regular file of this user's. Its name must begin and end like
// the names that the policy's path gives, and must not be that of a snapshot. Its content must name
// this program and a process that has ended. Takes about `most_time` at most; files that were not
// looked at by then stay until the next call. Failures are ignored.
void remove_old_reports(const std::string& own, std::string_view program, const ReportPolicy&,
                        OwnReport, std::chrono::nanoseconds most_time) noexcept;

}  // namespace cuwarden
