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

// Sets the report's path and limits. To be called before the other functions, and again in a forked
// child. `path`: absolute, with all % fields filled in. `symbol_time`: the longest time that the
// last report may take to name functions and lines.
void set_up_reports(const std::string& path, std::chrono::nanoseconds symbol_time);

// Writes the report at the beginning of exit(), from the devices' last readings so far and without
// names. The final report replaces it. It stays if the driver does not answer any more.
void write_report_before_readings(ledger::Writer&) noexcept;
// Writes the final report if CUWARDEN_REPORT_IF wants one; otherwise removes the report of an
// incident. Returns false if the report could not be written; a line has said why.
bool write_final_report(ledger::Writer&) noexcept;
// Returns the text that `cuwarden run` is told: the path of the report, or no_report_wanted.
std::string_view told_of_report() noexcept;

// Writes the report at an incident, if it is the first one with this verdict. `verdict`: the value
// of the enum Verdict, below 32. May throw bad_alloc.
void write_incident_report(ledger::Writer&, const ledger::Reader&, std::uint32_t verdict);

}  // namespace cuwarden::shim
