// Recognises two reports of one process.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/model/merged_report.hpp"
#include "reporters/model/process.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden {

// The facts that tell processes apart. Each may be unknown.
struct ProcessIdentity {
  model::Text host;     // name of the process's host; null in a redacted report
  model::Figure pid;    // process id in the process's pid namespace
  std::string start;    // start of the process, as ISO 8601 text in UTC; empty: unknown
  model::Text program;  // path of the program's file; its folders have no part in the comparison
};

// Returns the facts of the process that a report is about.
ProcessIdentity identity_of(const model::Process&);
// Returns the facts of the process that a row of a merged report is about.
ProcessIdentity identity_of(const model::MergedProcess&);

// Numbers processes and finds them again. Two processes are the same if pid, start and program are
// equal, and the hosts are, too, or one of them is unknown. A process without a pid or a start is
// never found.
class KnownProcesses {
 public:
  // Returns the number of the process; null if it was not added.
  std::optional<std::size_t> find(const ProcessIdentity&) const;
  // Adds a process under a number of the caller's choice.
  void add(const ProcessIdentity&, std::size_t number);

 private:
  // Hosts and numbers of the processes with one key.
  using Hosts = std::vector<std::pair<model::Text, std::size_t>>;
  // Returns a text of pid, start and the program's file name; empty if pid or start is unknown.
  static std::string key_of(const ProcessIdentity&);
  std::map<std::string, Hosts> by_key_;
};

}  // namespace cuwarden
