#include "reporters/text/elements/text_stacks.hpp"

#include <algorithm>
#include <vector>

#include "reporters/labels/users_frame.hpp"
#include "reporters/owners/short_names.hpp"
#include "reporters/text/elements/stack_lines.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

// Returns the lines about the frames, at most `most_lines`. If the style shows full stacks, returns
// all. The text of a line is made when it is first compared, since most stacks are longer than what
// is shown of them.
std::vector<DrawnLine> lines_about(const IndexedReport& report, const StackFrames& frames,
                                   std::size_t most_lines, const Style& style) {
  std::vector<DrawnLine> all = lines_of_frames(frames, style);
  if (style.shows_full_stacks()) return all;
  std::vector<std::string> texts(all.size());  // empty: not made yet
  const auto text_of = [&](std::size_t line) -> const std::string& {
    if (texts[line].empty())
      texts[line] = all[line].has_words() ? frame_line(report, *frames[all[line].first], 0, style)
                                          : counting_line(report, frames, all[line], style);
    return texts[line];
  };
  const auto look_alike = [&](std::size_t left, std::size_t right) {
    return text_of(left) == text_of(right);
  };
  return without_repetitions(all, most_lines, look_alike);
}

}  // namespace

std::string visible_frame(const IndexedReport& report, model::Id id) {
  const model::Frame* const frame = report.frame(id);
  return frame == nullptr ? "" : frame_line(report, *frame, 0, Style(false, true));
}

model::MaybeId calling_module(const IndexedReport& report, model::MaybeId id) {
  const model::Stack* const stack = report.stack(id);
  const model::Frame* const users =
      stack == nullptr ? nullptr : users_frame_of(report, frames_of(report, *stack));
  return users == nullptr ? std::nullopt : users->module;
}

CallingLocation calling_location(const IndexedReport& report, model::MaybeId id) {
  const model::Stack* const stack = report.stack(id);
  if (stack == nullptr) return {};
  const model::Frame* const users = users_frame_of(report, frames_of(report, *stack));
  if (users == nullptr) return {};
  const NamedFrame frame = named(report, *users);
  std::string function = frame.is_python ? std::string(frame.function) : name_alone(frame.function);
  const std::string_view file = file_name(frame.is_python ? frame.file : frame.path);
  std::string pattern = function.empty() ? std::string(file) + "$" : "^" + function + "$";
  if (function.empty())
    function = file;
  else if (!file.empty())
    (function += " in ") += file;
  return {.pattern = printable(std::move(pattern)),
          .file = printable(std::string(frame.file)),
          .line = frame.line,
          .caller = printable(std::move(function)),
          .location = printable(short_location_text(frame))};
}

std::string at_calling_location(const IndexedReport& report, model::MaybeId stack) {
  const std::string location = calling_location(report, stack).location;
  return location.empty() ? "" : " at " + short_name(location);
}

void add_stack(const IndexedReport& report, model::MaybeId id, std::size_t most_lines,
               const Style& style, std::string& text) {
  const model::Stack* const stack = report.stack(id);
  if (stack == nullptr || stack->frames.empty()) {
    text += style.dim("       no stack was recorded") + std::string("\n");
    return;
  }
  StackFrames frames = frames_of(report, *stack);
  const model::Frame* const users = users_frame_of(report, frames);
  if (!style.shows_full_stacks()) leave_out_the_known(frames);
  const std::vector<DrawnLine> lines = lines_about(report, frames, most_lines, style);
  if (users != nullptr && users != frames.front())
    text += "       " + style.bold(location_line(report, *users)) + "\n";
  std::size_t width = 0;
  for (const DrawnLine& line : lines)
    if (line.has_words())
      width = std::max(width, words_of(report, *frames[line.first], style).location.size());
  constexpr std::size_t most_width = 40;  // so that a long path does not push all functions away
  for (const DrawnLine& line : lines) {
    const std::string words =
        line.has_words()
            ? frame_line(report, *frames[line.first], std::min(width, most_width), style)
            : style.dim(counting_line(report, frames, line, style));
    text += "       " + words + "\n";
  }
  const std::size_t left = frames.size() - (lines.empty() ? 0 : lines.back().end);
  if (left != 0)
    text += style.dim("       … " + std::to_string(left) +
                      (left == 1 ? " more frame" : " more frames") + " (--full-stacks)") +
            "\n";
  if (stack->truncated) {
    text += style.dim(std::string("       … ") + why_cut(report, *stack)) + "\n";
  }
}

}  // namespace cuwarden
