#include "reporters/reports/report_policy.hpp"

#include <memory>
#include <vector>

#include "reporters/model/each_row.hpp"
#include "reporters/tables/groups/frameworks.hpp"
#include "reporters/tables/groups/implicit_groups.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "reporters/tables/ledger_damage.hpp"
#include "reporters/tables/process_facts.hpp"

namespace cuwarden {
namespace {

using ledger::EndReason;
using ledger::RegionId;

// Returns true if the count that `leaks` has in the report is not 0. Suppressions do not count,
// because functions are not named yet. `end_ns`: end of the process, in ns since its start.
bool has_leaks(const ledger::Reader& reader, std::uint64_t end_ns) {
  const std::uint64_t rows = reader.rows(RegionId::records);
  bool has_objects = false;
  for (std::uint64_t row = 1; row < rows; ++row) {
    const auto record = reader.record(row);
    if (!record || (record->flags & ledger::record_counts_no_bytes) != 0) continue;
    const auto group = reader.group(record->group.value);
    if (group && is_asked_for(group->kind)) return true;
    has_objects = has_objects || group;
  }
  if (!has_objects) return false;
  // Implicit objects are leaks only if their number grows. Their bytes do not matter here.
  const auto sums = std::make_unique<ledger::GroupSums>();  // too large for a small stack
  std::vector<LeakGroup> groups = leak_groups(reader, {.end_ns = end_ns}, *sums);
  take_blocks(groups);
  implicit_groups(reader, {}, groups);
  return leaks_of(groups).count.value_or(0) != 0;
}

bool has_incidents(const ledger::Reader& reader) {
  const std::uint64_t rows = reader.rows(RegionId::incidents);
  for (std::uint64_t row = 1; row < rows; ++row)
    if (reader.incident(row)) return true;
  return false;
}

bool ended_abnormally(const ledger::ProcessView& process, const ReportOptions& options) {
  switch (options.end_reason.value_or(process.end_reason)) {
    case EndReason::exit:
    case EndReason::underscore_exit:
    case EndReason::quick_exit:
      return process.exit_status != 0;  // nor is it normal where the status is unknown
    default:
      return true;
  }
}

}  // namespace

ReportPolicy report_policy(const ledger::Reader& reader) {
  ReportPolicy policy;
  each_row(reader, RegionId::settings, &ledger::Reader::setting, [&](const auto& setting) {
    if (setting.name == "CUWARDEN_REPORT_IF") {
      policy.only_if = parse_report_if(setting.value).value_or(ReportConditions{});
    } else if (setting.name == "CUWARDEN_REPORT_KEEP") {
      policy.keep = parse_report_keep(setting.value).value_or(0);
    } else if (setting.name == "CUWARDEN_REPORT") {
      policy.path_pattern = setting.value;
    }
  });
  return policy;
}

bool is_report_wanted(const ledger::Reader& reader, const ReportOptions& options,
                      const ReportConditions& conditions) {
  const ledger::ProcessView process = reader.process();
  if (process.report_path == path_of_no_report) return false;
  if (conditions == ReportConditions{}) return true;
  if (conditions.abnormal && ended_abnormally(process, options)) return true;
  if (conditions.incident && has_incidents(reader)) return true;
  if (conditions.leak &&
      (has_leaks(reader, end_of(process, options)) || !coverage_reasons(reader).empty()))
    return true;
  return (conditions.leak || conditions.incident) &&
         !record_reasons(process, find_damage(reader, options.at_rest), options).empty();
}

std::string why_no_report(const ReportPolicy& policy) {
  if (policy.path_pattern == path_of_no_report) return "CUWARDEN_REPORT=/dev/null asks for none";
  return "nothing happened that CUWARDEN_REPORT_IF=" + report_if_text(policy.only_if) + " asks for";
}

}  // namespace cuwarden
