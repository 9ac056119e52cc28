// Recognises reports that are about the same process.
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

// The facts by which two processes are told apart. Each fact may be unknown.
struct ProcessIdentity {
  model::Text host;   // name of the process's host; null: unknown, as in a redacted report
  model::Figure pid;  // process id in the process's pid namespace; null: unknown
  std::string start;  // start of the process, as ISO 8601 text in UTC; empty: unknown
  // Path of the program's file, of which only the file name is compared; null: unknown.
  model::Text program;
};

// Returns the facts of the process that a report is about.
ProcessIdentity identity_of(const model::Process&);
// Returns the facts of the process that a row of a merged report is about.
ProcessIdentity identity_of(const model::MergedProcess&);

// Keeps processes under numbers, and finds the number of a process again. Two processes are the
// same if pid, start and the program's file name are equal. Their hosts must be equal, too, unless
// one of them is unknown. A process without a pid or a start is never found.
class KnownProcesses {
 public:
  // Returns the number under which the process was added; null if it was not.
  std::optional<std::size_t> find(const ProcessIdentity&) const;
  // Adds a process under a number that the caller chooses.
  void add(const ProcessIdentity&, std::size_t number);

 private:
  // Processes whose pid, start and program are equal. For each, its host (null: unknown), and the
  // number that add() was given.
  using Hosts = std::vector<std::pair<model::Text, std::size_t>>;
  // Returns a text made of pid, start and the program's file name; empty if pid or start is
  // unknown.
  static std::string key_of(const ProcessIdentity&);
  // key_of() → the processes that were added with this key; none have an empty key.
  std::map<std::string, Hosts> by_key_;
};

}  // namespace cuwarden
