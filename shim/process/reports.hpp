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

// Sets where and how this process writes its report. To be called before any report is written, and
// again in a forked child. `path`: absolute path of the report, with %p and the other fields of
// CUWARDEN_REPORT already replaced; /dev/null for no report. It is copied. `symbol_time`: longest
// time that each report at the process's end may take to look up functions and source lines; 0:
// none are looked up. May throw std::bad_alloc.
void set_up_reports(const std::string& path, std::chrono::nanoseconds symbol_time);

// Writes a report now; to be called while the process runs exit(), before the program's destructors
// run. Does nothing if no report is asked for (CUWARDEN_REPORT_IF, or /dev/null as the path), the
// program has changed its root folder, or the last report was begun. Does nothing either if another
// report is still being written after ten seconds, or if the calling thread has interrupted its own
// writing. A ledger that cannot be read is logged; other failures are not. The report stays if the
// driver hangs in the rest of exit(). Otherwise write_final_report() replaces it, unless it has
// names and is still complete. `Writer`: this process's ledger. `with_names`: true if the report
// has names of functions and source lines. Finding names takes long, but write_final_report() then
// does not search for them again. To be called inside an OwnWork (a scope of cuwarden's own work).
void write_report_at_exit(ledger::Writer&, bool with_names) noexcept;
// Writes the process's last report if one is asked for (CUWARDEN_REPORT_IF, CUWARDEN_REPORT);
// otherwise removes an earlier report of this process. A report of write_report_at_exit() that has
// names and is still complete is not written again. Then removes old reports of the same program,
// as CUWARDEN_REPORT_KEEP says. `Writer`: this process's ledger. Returns true if the report is on
// disk or none is asked for. Returns false if the report could not be written, after an error line
// in the log. Also returns false if another thread has been writing a report for ten seconds, or
// the program has changed its root folder. To be called inside an OwnWork (a scope of cuwarden's
// own work).
bool write_final_report(ledger::Writer&) noexcept;
// Returns the number of leaked allocations at the process's end, without suppressed ones. `Writer`:
// this process's ledger. Counts them anew if there is no report. To be called after
// write_final_report(), inside an OwnWork (a scope of cuwarden's own work). 0 if the ledger
// cannot be read, or if there is too little memory to count.
std::uint64_t leaks_at_end(const ledger::Writer&) noexcept;
// Returns the text by which `cuwarden run` learns of this process's report: the report's path, or
// the constant no_report_wanted if none was asked for. The text is valid until the next report is
// written. To be called after write_final_report() has returned true.
std::string_view told_of_report() noexcept;

// Writes a report at an incident (refused request), at most once for each verdict in a process.
// `Writer`: this process's ledger, which `Reader` reads. `verdict`: the cause of the refusal, a
// value of the enum Verdict below 32. Writes nothing if CUWARDEN_REPORT is /dev/null, the last
// report was begun, or the program has changed its root folder. Writes nothing either if another
// report is still being written after ten seconds, or if the calling thread has interrupted its own
// writing. After a failure, which is not logged, later incidents with the verdict write no report
// either. Returns the path of the report that tells of the verdict; empty if there is none, or if
// CUWARDEN_REPORT_IF removes it at the end of the process. May throw std::bad_alloc.
std::string write_incident_report(ledger::Writer&, const ledger::Reader&, std::uint32_t verdict);

}  // namespace cuwarden::shim
