// The question that --fail-on-leak asks of a report.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// The answer of --fail-on-leak for a report.
struct LeakCheck {
  std::uint64_t count = 0, bytes = 0;  // leaks that count
  std::optional<std::string> doubt;    // reason why there may be more leaks; null if there are none
};

// Judges the report's leaks. `module`: if not empty, only leaks of modules whose path contains that
// text count. The options --top, --min-bytes and --by do not matter.
LeakCheck check_leaks(const IndexedReport&, const std::string& module);

// True if the path of the module contains the text.
bool is_in_module(const IndexedReport&, model::MaybeId module, const std::string& text);

// Returns the reason why the report may lack allocations: cuwarden lost some, or no hook saw them.
// Null if it has all of them. Missing names and lines do not count.
std::optional<std::string> lacks_records(const IndexedReport&);

// The modules that allocations of some reports came through.
class KnownModules {
 public:
  void add(const IndexedReport&);
  bool have(const std::string& text) const;  // true if a module's path contains the text
  // returns up to three names that are like it
  std::vector<std::string> nearest(const std::string& text) const;

 private:
  std::set<std::string> paths_;
};

}  // namespace cuwarden
