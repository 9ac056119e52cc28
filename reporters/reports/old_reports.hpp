// Removes reports that CUWARDEN_REPORT_KEEP does not keep.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "reporters/reports/report_policy.hpp"

namespace cuwarden {

// In the process that ends, and in a command.
inline constexpr std::chrono::milliseconds longest_removal_at_exit{200};
inline constexpr std::chrono::milliseconds longest_removal_afterwards{5000};

// Says whether the report that was just written stays although enough others are newer. A person
// who asked for it finds it.
enum class OwnReport { stays, may_go };

// Keeps the policy.keep reports of `program` in the folder of `own` whose processes ended last. A
// file is removed only if it is a regular file of this user's and is named as reports of the
// policy's path are. It has to say itself that it is the report of that program (the same path of
// an executable) and of a process that has ended. Looks at files for `most_time` at most; files
// that were not seen by then stay until the next time.
void remove_old_reports(const std::string& own, std::string_view program, const ReportPolicy&,
                        OwnReport, std::chrono::nanoseconds most_time) noexcept;

}  // namespace cuwarden
