// Tells if a report shows leaks, for the option --fail-on-leak of the command `cuwarden`, which
// then ends with a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// The leaks of a report that count for the option --fail-on-leak.
struct LeakCheck {
  std::uint64_t count = 0, bytes = 0;  // number of leaked allocations that count, and their bytes
  // Reason why `count` and `bytes` may be too low: the report lacks allocations, or only leaks of
  // some modules count, and the modules of other leaks are unknown. Null: there is no such reason.
  std::optional<std::string> doubt;
};

// Counts the report's leaks; all live allocations if the process was still running. `module`: if
// not empty, only leaks of modules (programs or libraries) whose path contains that text count.
LeakCheck check_leaks(const IndexedReport&, const std::string& module);

// Returns the reason why the report's table `leak_groups` does not list all leaks that
// check_leaks() has counted for the module; null if it does.
std::optional<std::string> unlisted_leaks(const IndexedReport&, const std::string& module,
                                          const LeakCheck&);

// True if `text` is a part of the path of a module that led to the leak: the one that called CUDA,
// or the one of the program's own code (calling_module()). False if no module is known.
bool is_in_module(const IndexedReport&, const model::LeakGroup&, const std::string& text);

// True if the group is memory that a framework has taken to hand out blocks of it, and the report's
// table `framework_sites` lists these blocks.
bool holds_listed_blocks(const IndexedReport&, const model::LeakGroup&);

// Returns the first reason why the report may lack allocations: cuwarden lost some, or calls went
// past its hooks. Null if the report has all allocations. Missing names and lines of functions do
// not count. In an old report without the field `records`, all reasons of the field `tool` count.
std::optional<std::string> lacks_records(const IndexedReport&);

// The paths of all modules (files of code) that some reports list. Tells a misspelt module name of
// the user's from one without leaks.
class KnownModules {
 public:
  // Adds the paths of the modules of a report.
  void add(const IndexedReport&);
  // True if the path of one of the modules contains `text`.
  bool have(const std::string& text) const;
  // Returns the file names of up to three modules that are most like `text`, the nearest one first.
  std::vector<std::string> nearest(const std::string& text) const;

 private:
  std::set<std::string> paths_;  // paths of the modules of all added reports
};

// Returns a line that says that no report has the module that --module names, and which are like
// it.
std::string line_about_unknown_module(const std::string& module, const KnownModules&);

}  // namespace cuwarden
