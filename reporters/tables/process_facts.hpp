// Reads the report's parts about the process as a whole from a ledger.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/model/process.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/ledger_damage.hpp"
#include "reporters/tables/report_options.hpp"

namespace cuwarden {

std::uint64_t end_of(const ledger::ProcessView&, const ReportOptions&) noexcept;

model::Process process_of(const ledger::ProcessView&, const ReportOptions&, std::uint64_t end_ns);
// Reads the cgroup's present figures from the kernel. Null if they are unknown, and for a ledger of
// another machine or boot.
std::optional<model::MemoryCgroup> memory_cgroup_of(const ledger::ProcessView&);
model::Job job_of(const ledger::Reader&);
void put_settings(const ledger::Reader&, Put<model::Setting>);
void put_environment(const ledger::Reader&, Put<model::Variable>);
void put_hooks(const ledger::Reader&, Put<model::HookCalls>);
void put_unhooked_lookups(const ledger::Reader&, Put<model::UnhookedLookup>);
model::Overhead overhead_of(const ledger::ProcessView&);

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
