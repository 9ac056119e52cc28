// Counts the leaks of a report for the option --fail-on-leak of the command `cuwarden`, which fails
// if there are any.
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
  std::uint64_t count = 0, bytes = 0;  // number of leaked allocations, and their bytes
  // Reason why `count` and `bytes` may be too low; null: there is none. Either the report lacks
  // allocations, or only leaks of some modules count and the modules of other leaks are unknown.
  std::optional<std::string> doubt;
};

// Counts the leaks of a report. If its process was still running, all live allocations count.
// `module`: text; only leaks of modules (programs or libraries) whose path contains it count.
// Empty: all leaks count.
LeakCheck check_leaks(const IndexedReport&, const std::string& module);

// Returns the reason why the report's table `leak_groups` lists fewer leaks than check_leaks() has
// counted; null if it lists all. `module`: the text that was given to check_leaks(). `check`: its
// result.
std::optional<std::string> unlisted_leaks(const IndexedReport&, const std::string& module,
                                          const LeakCheck& check);

// True if `text` is a part of the path of a module that led to the leak. This is the module that
// called CUDA, or the innermost one of the program's own code (calling_module()). False if neither
// is known.
bool is_in_module(const IndexedReport&, const model::LeakGroup&, const std::string& text);

// True if the group is memory that PyTorch has taken in order to hand out blocks of it, and the
// report lists such blocks: its table `framework_sites` has rows for the same device.
bool holds_listed_blocks(const IndexedReport&, const model::LeakGroup&);

// Returns the first reason why allocations may be missing from the report: cuwarden could not
// record some, or calls of CUDA went past its hooks. Null if the report has all allocations.
// Missing names and lines of functions are no reason. In an old report without the field `records`,
// all reasons of the field `tool` count.
std::optional<std::string> lacks_records(const IndexedReport&);

// The paths of all modules (files of code) that some reports list. Shows whether a module that the
// user named is misspelt, or only has no leaks.
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

// Returns a line for the user about an option --module that fits no module of the reports: it names
// up to three modules with similar names. `module`: value of the option.
std::string line_about_unknown_module(const std::string& module, const KnownModules&);

}  // namespace cuwarden
