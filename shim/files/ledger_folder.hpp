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
// $TMPDIR (if absolute), /dev/shm, /tmp. If none can, the ledger is in anonymous memory, without a
// file. Warns if CUWARDEN_LEDGER_DIR is set but cannot hold it. Then removes ledgers that dead
// processes of the same program have left in that folder, except the CUWARDEN_REPORT_KEEP newest;
// if this setting is 0, removes none. `report_path`: absolute path of the report; /dev/null for no
// report, whose folder is not used. `pid`: pid of this process. Returns null if there is no memory.
// The returned writer is never destroyed. May throw std::bad_alloc.
ledger::Writer* make_ledger(const Settings&, const std::string& report_path, int pid);

// Returns the end of an error message about a report that could not be written. The text says that
// the records stay in the ledger's file, and which command makes the report from it. `ledger_path`:
// path of that file. If it is empty, the ledger is in memory, and the result is empty, too.
std::string where_the_records_stay(std::string_view ledger_path);

// Writes one warning line to the log about this process's ledger. `stopped`: true if recording has
// stopped, which the line then says. Otherwise the line says that the ledger is full or cannot
// grow, so that later allocations are missing in the report. If the system refused to let the
// ledger grow, the line names the operation that failed.
void say_ledger_is_incomplete(ledger::Writer&, bool stopped) noexcept;

}  // namespace cuwarden::shim
