// Removes reports that CUWARDEN_REPORT_KEEP does not keep.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "reporters/reports/report_policy.hpp"

namespace cuwarden {

// Longest time for removing old reports: in a process that ends, and in the command.
inline constexpr std::chrono::milliseconds longest_removal_at_exit{200};
inline constexpr std::chrono::milliseconds longest_removal_afterwards{5000};

// Says if the report that was just written may be removed, too, when enough other reports are
// newer. A report that a user asked for stays.
enum class OwnReport { stays, may_go };

// Removes old reports of `program` in the folder of the report `own`: the policy.keep reports whose
// processes ended last stay. A file is removed only if it is a regular file of this user's and has
// a name as the policy's path gives it. It must also say itself that it is the report of that
// program, and of a process that has ended. `program`: path of the executable. Takes at most
// `most_time`; files that were not looked at by then stay until the next call.
void remove_old_reports(const std::string& own, std::string_view program, const ReportPolicy&,
                        OwnReport, std::chrono::nanoseconds most_time) noexcept;

}  // namespace cuwarden
