// Makes the report of a process that died without writing one, from the ledger it left behind.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace cuwarden {

struct DeadProcess {
  pid_t pid = 0;
  std::optional<int> signal;  // that killed it
};

bool is_ledger(const std::string& path);

// The report's path; the ledger is then removed. Null with `error` empty when the process is alive,
// or had written its report: then the ledger is removed too, and `written` gets the path that the
// report was meant for. Null with one line in `error` when the ledger cannot be read or the report
// not written. `waited_for`: the process whose end is known.
std::optional<std::string> recover(const std::string& ledger_path, const DeadProcess& waited_for,
                                   std::string& error, std::string* written = nullptr);

}  // namespace cuwarden
