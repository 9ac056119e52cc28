// The question that --fail-on-leak asks of a report.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

struct LeakCheck {
  std::uint64_t count = 0, bytes = 0;  // of the leaks that are judged
  std::optional<std::string> doubt;    // why it cannot be known that there are no others
};

// Judges the report's `leaks`; with `module`, those of its groups whose module's path contains that
// text. Options that choose what is shown (--top, --min-bytes, --by) have no part in it.
LeakCheck check_leaks(const IndexedReport&, const std::string& module);

// True if the path of the module contains the text.
bool is_in_module(const IndexedReport&, model::MaybeId module, const std::string& text);

// Why allocations may be missing: lost by the tool, or made where no hook saw them. Null: they are
// all there; names and lines are another matter.
std::optional<std::string> lacks_records(const IndexedReport&);

// The modules that allocations of some reports came through.
class KnownModules {
 public:
  void add(const IndexedReport&);
  bool have(const std::string& text) const;                         // in a path
  std::vector<std::string> nearest(const std::string& text) const;  // three names at most

 private:
  std::set<std::string> paths_;
};

}  // namespace cuwarden
