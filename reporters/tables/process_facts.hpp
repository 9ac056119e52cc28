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

// Returns the end of the process, in nanoseconds since its start, by the options or the ledger.
std::uint64_t end_of(const ledger::ProcessView&, const ReportOptions&) noexcept;

model::Process process_of(const ledger::ProcessView&, const ReportOptions&, std::uint64_t end_ns);
// Returns the cgroup's present figures, read from the kernel; null if they are unknown, or if the
// ledger is of another machine or boot.
std::optional<model::MemoryCgroup> memory_cgroup_of(const ledger::ProcessView&);
model::Job job_of(const ledger::Reader&);
void put_settings(const ledger::Reader&, Put<model::Setting>);
void put_environment(const ledger::Reader&, Put<model::Variable>);
void put_hooks(const ledger::Reader&, Put<model::HookCalls>);
void put_unhooked_lookups(const ledger::Reader&, Put<model::UnhookedLookup>);
model::Overhead overhead_of(const ledger::ProcessView&);

// Return sentences for the report: allocations that were seen but not recorded; other things that
// cuwarden could not do; memory that no hook can have seen.
std::vector<std::string> record_reasons(const ledger::ProcessView&, const LedgerDamage&,
                                        const ReportOptions&);
std::vector<std::string> tool_reasons(const ledger::ProcessView&, const ReportOptions&);
std::vector<std::string> coverage_reasons(const ledger::Reader&);

// Returns the time, given in nanoseconds since 1970, as text such as "2026-01-31T12:00:00.000Z".
std::string iso_8601(std::int64_t realtime_ns);
// Returns the version of NVIDIA's kernel module, which is that of the driver package; empty if it
// is not loaded.
std::string driver_package_version();

// Returns the step in which a ledger could not grow, such as "the system refused to open its file
// (operation not permitted)". Null if there was none, or if there was no room on the disk or in the
// address space. `error`: an errno.
std::optional<std::string> refused_growth(ledger::GrowthOperation, int error);
std::string version_text(int version);  // 13000 → "13.0"; 0 → ""

}  // namespace cuwarden
