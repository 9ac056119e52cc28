// Makes the report's parts about the process as a whole from a ledger. Each put_*() passes each row
// of its table to its last parameter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/process.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/ledger_damage.hpp"
#include "reporters/tables/report_options.hpp"

namespace cuwarden {

// Returns the time of the process's end, in nanoseconds since its start: ReportOptions::end_ns. If
// that is null, returns the present time, or 0 if the process started in the future.
std::uint64_t end_of(const ledger::ProcessView&, const ReportOptions&) noexcept;

// Returns the report's description of the process. `end_ns`: the result of end_of(). The version of
// the driver package is the one that this machine has at present; all else comes from the ledger
// and the options.
model::Process process_of(const ledger::ProcessView&, const ReportOptions&, std::uint64_t end_ns);
// Returns limit, peak and OOM kills of the process's memory cgroup, as the kernel gives them at
// present. Null if they are unknown, or if the process ran on another machine or before the last
// boot.
std::optional<model::MemoryCgroup> memory_cgroup_of(const ledger::ProcessView&);
// Returns the outcome of the search of the process's memory for pointers to its live allocations;
// null if no search was made.
std::optional<model::PointerSearch> pointer_search_of(const ledger::ProcessView&);
// Returns the batch job of the process (scheduler, ids, rank), by the environment variables that
// the ledger keeps. Fields that no variable gives are null.
model::Job job_of(const ledger::Reader&);
// Calls the last parameter, with a row of the report, for each setting of cuwarden in the process.
void put_settings(const ledger::Reader&, Put<model::Setting>);
// Calls the last parameter, with a row of the report, for each environment variable of the process
// that the ledger keeps.
void put_environment(const ledger::Reader&, Put<model::Variable>);
// Calls the last parameter, with a row of the report, for each hooked CUDA function that the
// program called.
void put_hooks(const ledger::Reader&, Put<model::HookCalls>);
// Calls the last parameter, with a row of the report, for each driver function without a hook whose
// look-ups by name the ledger has counted. Such a function makes the device read or write memory,
// or is another version of a function that has a hook.
void put_unhooked_lookups(const ledger::Reader&, Put<model::UnhookedLookup>);
// Returns the cost of recording the process: number of recorded calls, and bytes of the ledger. The
// time is not measured: model::Overhead::shim_ns is 0 if no call was recorded, otherwise null.
model::Overhead overhead_of(const ledger::ProcessView&);

// Returns a sentence for each reason why allocations that hooks saw are missing from the report:
// the ledger was full, could not grow or is damaged, or recording stopped. Empty if there is none.
std::vector<std::string> record_reasons(const ledger::ProcessView&, const LedgerDamage&,
                                        const ReportOptions&);
// Returns a sentence for each thing, apart from recording allocations, that cuwarden could not do,
// such as keep the ledger in a file. Empty if there is none.
std::vector<std::string> tool_reasons(const ledger::ProcessView&, const ReportOptions&);
// Returns a sentence for each sign that calls of CUDA went past the hooks, so that the report lacks
// them. Empty if there is none.
std::vector<std::string> coverage_reasons(const ledger::Reader&);

// Returns a time in UTC as text such as "2026-01-31T12:00:00.000000000Z". `realtime_ns`:
// nanoseconds since 1970.
std::string iso_8601(std::int64_t realtime_ns);
// Returns the version of the NVIDIA driver's kernel module on this machine, such as "580.159.04".
// The driver package has the same version. Empty if the module is not loaded.
std::string driver_package_version();

// Returns a text that says why a ledger could not grow, such as "the system refused to open its
// file (operation not permitted)". `operation`: the operation that failed. `error`: its errno. Null
// if the operation is `none`, or if `error` only means a lack of disk, memory or descriptors.
std::optional<std::string> refused_growth(ledger::GrowthOperation operation, int error);
// Returns the text of a CUDA version number, such as "13.0" for 13000. Empty if `version` is 0 or
// less, which means an unknown version.
std::string version_text(int version);

}  // namespace cuwarden
