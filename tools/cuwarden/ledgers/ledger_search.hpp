// Finds ledgers (the files in which processes record their allocations): in folders, and among the
// files that a running process has mapped.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cuwarden/ledgers/ledger_file.hpp"

namespace cuwarden {

// Returns the paths of the folders in which a program that is started in the current folder with
// this command's environment may have its ledger. These are CUWARDEN_LEDGER_DIR, the folder of
// CUWARDEN_REPORT, the current folder, $TMPDIR, /dev/shm and /tmp. Leaves out folders that do not
// exist, a folder of CUWARDEN_REPORT with a % in its path, and a $TMPDIR that is not absolute. A
// folder with several names is listed once.
std::vector<std::string> usual_ledger_folders();

// Returns the paths of the files directly in the folder that have the name of a ledger, a file with
// the records of a process. They are sorted by the processes' host, then by the processes' start,
// oldest first. Sets `error` to an errno if the folder could not be read, and otherwise to 0.
std::vector<std::string> ledgers_in(const std::string& folder, int& error);
// Returns the paths of the regular files directly in the folder whose names begin with `start` and
// end with `end`, in no particular order. Sets `error` to an errno if the folder could not be read,
// and otherwise to 0.
std::vector<std::string> files_in(const std::string& folder, std::string_view start,
                                  std::string_view end, int& error);

// The ledger of a running process, or the reason why there is none.
struct LiveLedger {
  std::unique_ptr<LedgerFile> file;  // the open ledger; null if none can be read
  std::string error;                 // if `file` is null: the reason, one line for the user
  // True if `file` is null because there is no ledger of a running process. The process has mapped
  // none; or the ledger is missing, still being made, a copy, or of a process that has ended. False
  // for other reasons, such as a lack of rights, or a pid without a process.
  bool has_none = false;
};
// Finds and opens the ledger that the running process `pid` writes, among the files that the
// process has mapped (/proc/PID/maps). Does not stop or change the process. If there is no such
// process, or no ledger that can be read, LiveLedger::file is null and LiveLedger::error says why.
LiveLedger ledger_of(pid_t pid);
// Opens the ledger at `path`, if its process still runs. The process may be invisible to this
// command, as in another pid namespace, so the lock on the file decides. The process is taken to
// have ended if it had locked the ledger, and this file is no copy and has no lock. A process that
// had no lock is taken to run, since not every file system has locks; LiveLedger::file may then
// hold the lock. If the process has ended, the file is an unlocked copy, or the ledger cannot be
// read, LiveLedger::file is null and LiveLedger::error says why.
LiveLedger live_ledger_at(const std::string& path);

// Returns the message about a copy of a ledger whose process still runs, without the copy's path:
// it names the process, and the command that makes the process's report.
std::string about_copy_of_running(const ledger::ProcessView&);
// Returns the message about a ledger whose process may run in a container that this command cannot
// see, without the ledger's path: it names the process, and says where the command can see it.
std::string about_process_out_of_sight(const ledger::ProcessView&);

}  // namespace cuwarden
