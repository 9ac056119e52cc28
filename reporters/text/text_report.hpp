// The text that `cuwarden report` shows of a report: leaks by bytes and call stack, refused
// requests, use of devices.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// The property by which the text of a report groups leaks: call stack; module that made the call;
// CUDA function that the program called; kind of memory and device.
enum class GroupBy : std::uint8_t { stack, module, api, kind };

// Options of `cuwarden report` that choose what the text shows.
struct TextOptions {
  GroupBy by = GroupBy::stack;  // property by which leaks are grouped
  std::size_t top = 10;  // most groups of leaks (by the property `by`) that are shown; 0: all
  // Groups of leaks with one call stack that have fewer bytes than this are left out; 0: none.
  std::uint64_t min_bytes = 0;
  std::string module;   // only leaks of modules whose path contains this text; empty: all
  bool colour = false;  // true if the text gets terminal colours
  // True if call stacks show all frames, and names as they are; false: frames of libraries are
  // folded, and long names are cut.
  bool full_stacks = false;
  // Columns of the terminal or the page: longer lines are continued in indented ones; 0: never.
  std::size_t columns = 0;
  bool ascii = false;  // true if the text has ASCII characters alone
};

// Returns the text of a report: many lines, the last one with a line feed.
std::string text_report(const IndexedReport&, const TextOptions&);

}  // namespace cuwarden
