// The text that `cuwarden report` shows of a report: leaks by bytes and call stack, refused
// requests, use of devices.
#pragma once

#include <cstdint>
#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/model/row_progress.hpp"

namespace cuwarden {

// The property by which the text of a report puts leaks together: call stack; module that made the
// call; CUDA function that the program called (`api`); kind of memory and device (`kind`).
enum class GroupBy : std::uint8_t { stack, module, api, kind };

// Options of `cuwarden report` that choose what the text shows.
struct TextOptions {
  GroupBy by = GroupBy::stack;  // property by which leaks are put together
  // Most rows that are shown of leaks, and of live blocks of frameworks; 0: all. Lists of holders
  // of memory show three at most, unless `top` is 0.
  std::size_t top = 10;
  // Call stacks with fewer leaked bytes than this are left out; 0: none is left out.
  std::uint64_t min_bytes = 0;
  std::string module;   // text; only leaks of modules whose path contains it are shown; empty: all
  bool colour = false;  // true if the text gets terminal colours
  // True if call stacks show all frames, with names as they are; false: neighbouring frames of a
  // library are one line, and long names are cut.
  bool full_stacks = false;
  // True if the text names the suppressions (rules that exclude leaks) that matched nothing in the
  // report.
  bool unmatched_suppressions = true;
  // Width of the terminal or the page in characters. Longer lines are continued in indented ones.
  // Words that are longer than a line are broken, too, unless call stacks show all frames. 0: lines
  // are never broken.
  std::size_t columns = 0;
  bool ascii = false;  // true if the text has ASCII characters alone
};

// Returns the text of a report: many lines, the last one with a line feed. `told`: is called now
// and then with the progress.
std::string text_report(
    const IndexedReport&, const TextOptions&, Told told = [](std::size_t, std::size_t) {});

}  // namespace cuwarden
