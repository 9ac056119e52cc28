// `cuwarden top --once`: takes two samples of running processes, and prints what they say.
#pragma once

#include <sys/types.h>

#include <memory>

#include "tools/cuwarden/ledgers/ledger_file.hpp"

namespace cuwarden {

// Prints the process and its call stacks once to standard output, after half a second between two
// samples of the process. `LedgerFile`: the process's ledger. `json`: true for one JSON object,
// false for text.
void print_process_once(pid_t, std::unique_ptr<LedgerFile>, bool json);
// Prints all running processes that have a ledger once to standard output, after half a second
// between two samples of each. `json`: true for one JSON object, false for text.
void print_processes_once(bool json);

}  // namespace cuwarden
