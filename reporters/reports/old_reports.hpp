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

// Says if remove_old_reports() may remove the report that was just written. `stays`: it may not,
// since a user asked for the report. `may_go`: it may, if enough other reports are newer.
enum class OwnReport { stays, may_go };

// Removes old reports of a program. `own`: path of the report that was just written; only its
// folder is searched. `program`: path of the program's file; if it is empty, nothing is removed. As
// many reports stay as ReportPolicy::keep says: those of the processes that ended last. If it is 0,
// all stay. If OwnReport is `stays`, the report at `own` is one of those that stay, even if it is
// older.
//
// Only regular files of this user are removed. The file's name must begin and end like the names
// that the policy's path gives, and must not be that of a snapshot. Its content must name this
// program and a process that has ended. `most_time`: approximate limit of the time; files that were
// not looked at by then stay until the next call. Failures are ignored.
void remove_old_reports(const std::string& own, std::string_view program, const ReportPolicy&,
                        OwnReport, std::chrono::nanoseconds most_time) noexcept;

}  // namespace cuwarden
