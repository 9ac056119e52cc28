// The process's report file: written at the first incident of each verdict, so that the facts are
// on disk whatever happens next, and replaced at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Before all others, and again in a forked child. `path`: absolute, expanded.
// `symbol_time`: the longest that naming functions and lines may take in the last report.
void set_up_reports(const std::string& path, std::chrono::nanoseconds symbol_time);

// The report at the beginning of exit(), from the readings that there are: the one that is left
// where the driver does not answer any more. Without names; the last one replaces it.
void write_report_before_readings(ledger::Writer&) noexcept;
// The report of the process's end, where CUWARDEN_REPORT_IF wants one; an incident's is removed
// where it does not. False: it could not be written, and why was said.
bool write_final_report(ledger::Writer&) noexcept;
// Returns the entry for `cuwarden run`: the path of the report, or no_report_wanted.
std::string_view told_of_report() noexcept;

// The report of an incident, where its verdict is the first of its kind. `verdict`: a number
// below 32. May throw bad_alloc.
void write_incident_report(ledger::Writer&, const ledger::Reader&, std::uint32_t verdict);

}  // namespace cuwarden::shim
