// The objects of a report that are about the process as a whole.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/json_stream.hpp"
#include "reporters/ledger_damage.hpp"
#include "reporters/report_json.hpp"

namespace cuwarden {

std::uint64_t end_of(const ledger::ProcessView&, const ReportOptions&) noexcept;

Row process_row(const ledger::ProcessView&, const ReportOptions&, std::uint64_t end_ns);
// As the kernel has it now; null where that is unknown, or a ledger's of another machine or boot.
Row memory_cgroup_row(const ledger::ProcessView&);
Row job_row(const ledger::Reader&);

// Sentences: which allocations the tool saw and lost, what else it could not do, and which memory
// its hooks cannot have seen.
std::vector<std::string> record_reasons(const ledger::ProcessView&, const LedgerDamage&,
                                        const ReportOptions&);
std::vector<std::string> tool_reasons(const ledger::ProcessView&, const ReportOptions&);
std::vector<std::string> coverage_reasons(const ledger::Reader&);

std::string iso_8601(std::int64_t realtime_ns);
// The kernel module's version, which is that of the driver package; empty without one.
std::string driver_package_version();

// "the system refused to open its file (operation not permitted)": the step in which a ledger could
// not grow. Null where there is none, or where room was missing: on the disk, or of addresses.
std::optional<std::string> refused_growth(ledger::GrowthOperation, int error);
std::string version_text(int version);  // 13000 → "13.0"; 0 → ""

}  // namespace cuwarden
