// Elements that sections of the text report share: colours, fields of rows, and call stacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reporters/model/indexed_report.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// Adds colours to a text, if they are wanted.
class Paint {
 public:
  explicit Paint(bool colour) : colour_(colour) {}
  std::string bold(const std::string& text) const { return in(bold_colour, text); }
  std::string dim(const std::string& text) const { return in(dim_colour, text); }
  std::string red(const std::string& text) const { return in(red_colour, text); }
  std::string green(const std::string& text) const { return in(green_colour, text); }
  std::string yellow(const std::string& text) const { return in(yellow_colour, text); }

 private:
  std::string in(std::string_view start, const std::string& text) const {
    return colour_ ? std::string(start) + text + std::string(end_of_colour) : text;
  }
  bool colour_;
};

// Returns the text so that it does not act on a terminal, or `otherwise` if it is null.
std::string text_or(const model::Text&, const char* otherwise);

// Returns the last part of a path.
std::string file_name(const std::string& path);
std::string allocations(std::uint64_t count);  // "1 allocation", "1,200 allocations"
// Returns a text such as "device memory (GPU 0)" or "pinned".
std::string memory_name(const std::string& kind, model::MaybeId device);
// Returns a text such as "CUDA_VISIBLE_DEVICES=3"; null if the variable was not set.
std::optional<std::string> visible_devices(const IndexedReport&);
bool was_running(const IndexedReport&);  // true if the process went on after the report
// True if the process ended in the midst of its work: it aborted, was killed, or its record ends
// for another reason.
bool was_at_work(const IndexedReport&);

// Returns the text of a frame: function, file and line; for unknown ones module and offset.
std::string visible_frame(const IndexedReport&, model::Id);

// Adds the frames of a stack, a line each, without those inside CUDA's libraries.
void add_stack(const IndexedReport&, model::MaybeId stack, std::size_t most_frames, const Paint&,
               std::string& text);

}  // namespace cuwarden
