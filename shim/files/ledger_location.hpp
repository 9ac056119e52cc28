// Chooses the folder of this process's ledger (the memory-mapped file with the allocation records),
// and tells the user about that file.
#pragma once

#include <string>
#include <string_view>

#include "runtime_hooks/ledger/write/writer.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Makes the ledger, the memory-mapped file with the allocation records of this process. The file
// lies in the first of these folders that can hold it: CUWARDEN_LEDGER_DIR, the report's folder,
// $TMPDIR, /dev/shm, /tmp. If none can, the ledger is in anonymous memory, without a file. Warns if
// CUWARDEN_LEDGER_DIR is set but cannot hold it. Removes old ledgers of dead processes, as
// CUWARDEN_REPORT_KEEP says. `report_path`: absolute path of the report. `pid`: this process's.
// Returns null if there is no memory; the writer is never destroyed.
ledger::Writer* make_ledger(const Settings&, const std::string& report_path, int pid);

// Returns the end of an error message about a report that could not be written. The text says that
// the records stay in the ledger's file, and which command makes the report from it. Returns an
// empty text if `ledger_path` is empty: then the ledger is in memory, without a file.
std::string where_the_records_stay(std::string_view ledger_path);

// Writes one warning line to the log about the ledger. If `stopped`, the line says that recording
// has stopped. Otherwise it says that the ledger is full or cannot grow, so that later allocations
// are missing in the report; if the system refused to let it grow, the line names the operation
// that failed.
void say_ledger_is_incomplete(ledger::Writer&, bool stopped) noexcept;

}  // namespace cuwarden::shim
