// Elements that the sections of the text report share: colours, and texts of single values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// The look of the text report: whether it has terminal colours, and how call stacks are shown. The
// functions for colours return the text unchanged if there are no colours.
class Style {
 public:
  // `colour`: true if texts get colours. `full_stacks`: true if call stacks show all frames, with
  // names as they are; false: neighbouring frames of a library are one line, and long names are
  // cut.
  explicit Style(bool colour, bool full_stacks = false)
      : colour_(colour), full_stacks_(full_stacks) {}
  // True if call stacks show all frames, with names as they are.
  bool shows_full_stacks() const { return full_stacks_; }
  // Returns the text in bold letters.
  std::string bold(const std::string& text) const { return in(bold_colour, text); }
  // Returns the text in pale letters.
  std::string dim(const std::string& text) const { return in(dim_colour, text); }
  // Returns the text in red.
  std::string red(const std::string& text) const { return in(red_colour, text); }
  // Returns the text in green.
  std::string green(const std::string& text) const { return in(green_colour, text); }
  // Returns the text in yellow.
  std::string yellow(const std::string& text) const { return in(yellow_colour, text); }

 private:
  // Returns the text between the escape sequence `start` and the one that ends all colours; the
  // text alone if colours are off.
  std::string in(std::string_view start, const std::string& text) const {
    return colour_ ? std::string(start) + text + std::string(end_of_colour) : text;
  }
  bool colour_;       // true if texts get colours
  bool full_stacks_;  // true if call stacks show all frames, with names as they are
};

// Returns a text of the report, with a question mark in place of each byte that could control a
// terminal. Returns `otherwise` if the text is null.
std::string text_or(const model::Text&, const char* otherwise);

// Returns a text such as "1 allocation" or "1,200 allocations".
std::string allocations(std::uint64_t count);
// Returns a text such as "3 allocations", or "3 streams" for objects with implicit memory. `kind`:
// kind of memory, as in reports.
std::string counted(std::uint64_t count, const std::string& kind);
// Returns the name of a step of the program, printable, and in quotation marks if it has a space or
// a comma.
std::string name_of_step(const model::NamedStep&);
// Returns words for the allocations of a step that were not freed, such as "6.0 MiB in 6
// allocations". An unknown figure is called unknown.
std::string sizes_of(const model::NamedStep&);
// Returns words for the named steps (such as tests) in which a group of allocations was made, such
// as "in test_cache". The figures of each step follow its name if there are several steps, or if
// allocations were made outside of the steps. `count`: number of the group's allocations that were
// not freed, in steps or outside of them. Three steps are named at most. Empty: there are no steps.
std::string words_of_steps(const std::vector<model::NamedStep>&, std::uint64_t count);
// Returns words for a kind of memory on a device, such as "device memory (GPU 0)"; without a
// device, such as "pinned host memory". `kind`: as in reports. `device`: CUDA ordinal; null for
// host memory.
std::string memory_name(const std::string& kind, model::MaybeId device);
// Returns the environment variable CUDA_VISIBLE_DEVICES of the report's process, such as
// "CUDA_VISIBLE_DEVICES=3"; null if it was not set, or if the report lacks it, as a redacted one.
std::optional<std::string> visible_devices(const IndexedReport&);
// True if the report's process was still running when the report was made. False also if the
// reason for its end is unknown.
bool was_running(const IndexedReport&);
// True if a process with this end (model::Process::end_reason) was ended in the midst of its work:
// it aborted, a signal killed it, or the reason is unknown.
bool is_end_at_work(const model::Text& end_reason);
// True if the report's process was ended in the midst of its work: it aborted, a signal killed it,
// or the reason of its end is unknown.
bool was_at_work(const IndexedReport&);

}  // namespace cuwarden
