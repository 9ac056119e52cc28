// Finds ledgers, in the folders that the shim uses and among the mapped files of a process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cuwarden/ledgers/ledger_file.hpp"

namespace cuwarden {

// Returns the folders in which the shim would put a ledger, as if this command were the program.
// A folder with several names is listed once.
std::vector<std::string> usual_ledger_folders();

// Returns the paths of the ledgers that lie directly in the folder, the oldest first. Sets `error`
// to an errno, or to 0 if the folder could be read.
std::vector<std::string> ledgers_in(const std::string& folder, int& error);
// Returns the paths of the regular files directly in the folder whose names begin with `start` and
// end with `end`. Sets `error` as ledgers_in() does.
std::vector<std::string> files_in(const std::string& folder, std::string_view start,
                                  std::string_view end, int& error);

struct LiveLedger {
  std::unique_ptr<LedgerFile> file;  // null if no ledger can be read; then `error` is the reason
  std::string error;                 // one line
  bool has_none = false;             // true if the process records nothing, or not in a file
};
// Finds the ledger that a running process has mapped, without disturbing the process.
LiveLedger ledger_of(pid_t pid);

}  // namespace cuwarden
