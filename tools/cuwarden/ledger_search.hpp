// Where ledgers lie: in the folders that the shim uses, and behind the mappings of a process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cuwarden/ledger_file.hpp"

namespace cuwarden {

// Those that the shim tries, with this command's environment and folder in place of the program's.
// Each folder once, whatever its names.
std::vector<std::string> usual_ledger_folders();

// Paths of the ledgers that lie directly in a folder, the oldest first. `error`: an errno, or 0.
std::vector<std::string> ledgers_in(const std::string& folder, int& error);
// Paths of the regular files directly in a folder whose names begin and end so.
std::vector<std::string> files_in(const std::string& folder, std::string_view start,
                                  std::string_view end, int& error);

struct LiveLedger {
  std::unique_ptr<LedgerFile> file;  // null: there is none that can be read, and `error` says why
  std::string error;                 // one line
  bool has_none = false;             // the process records nothing, or not in a file
};
// The ledger that a running process has mapped, found without disturbing it.
LiveLedger ledger_of(pid_t pid);

}  // namespace cuwarden
