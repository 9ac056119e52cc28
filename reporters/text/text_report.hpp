// The summary of a report for people: what leaks, how much, from where.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

enum class GroupBy : std::uint8_t { stack, module, api, kind };

// Options of `cuwarden report` that choose what the text shows.
struct TextOptions {
  GroupBy by = GroupBy::stack;
  std::size_t top = 10;         // number of groups that are shown; 0: all
  std::uint64_t min_bytes = 0;  // smaller groups are left out
  std::string module;           // only groups whose module's path contains this; empty: all
  bool colour = false;
};

std::string text_report(const IndexedReport&, const TextOptions&);

}  // namespace cuwarden
