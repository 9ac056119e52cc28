// Writes this process's report file. It is written at the first incident (refused request) of each
// verdict, so that the facts are on disk even if the program crashes. It is replaced at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Sets the report's path and limits. To be called before the other functions of this header, and
// again in a forked child. `path`: absolute path of the report, with all % fields filled in.
// `symbol_time`: longest time that the last report may take to name functions and source lines.
void set_up_reports(const std::string& path, std::chrono::nanoseconds symbol_time);

// Writes a report in exit(), before the program's destructors run. `with_names`: with names of
// functions and lines, which take long; write_final_report() then has them at hand. It replaces
// this report; if the driver hangs meanwhile, this report stays on disk. Writes none that
// CUWARDEN_REPORT_IF does not want.
void write_report_at_exit(ledger::Writer&, bool with_names) noexcept;
// Writes the last report if CUWARDEN_REPORT_IF wants one; otherwise removes an earlier report of
// this process. Then removes old reports of the program as the settings say. Returns false if the
// report could not be written; an error line in the log has said why. True if none is wanted.
bool write_final_report(ledger::Writer&) noexcept;
// Returns the text by which `cuwarden run` learns of the report: its path, or no_report_wanted if
// no report was written. Valid until the next report is written.
std::string_view told_of_report() noexcept;

// Writes a report at an incident (refused request), if the process has met none with this verdict
// before. `verdict`: value of the enum Verdict, below 32. Writes nothing if the last report was
// begun or the program has changed its root folder. May throw std::bad_alloc.
void write_incident_report(ledger::Writer&, const ledger::Reader&, std::uint32_t verdict);

}  // namespace cuwarden::shim
