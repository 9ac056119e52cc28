#include "reporters/text/elements/stack_lines.hpp"

#include <algorithm>

#include "reporters/labels/report_frames.hpp"
#include "reporters/labels/users_frame.hpp"
#include "reporters/owners/short_names.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/setting_values.hpp"

namespace cuwarden {
namespace {

// Returns the index behind the neighbouring frames, from index `first` on, that belong to one
// library. Returns `first` + 1 if that frame is of no library, or if the style shows full stacks.
std::size_t end_of_library(const StackFrames& frames, std::size_t first, const Style& style) {
  std::size_t end = first + 1;
  if (style.shows_full_stacks() || !frames[first]->library) return end;
  while (end < frames.size() && frames[end]->library == frames[first]->library) ++end;
  return end;
}

// Returns the line that stands for repetitions of the lines from index `first` on.
// DrawnLine::repeated is the number of these lines, from 1 to 4; it is 0 if they are not repeated
// at least twice.
DrawnLine repetition_of(const std::vector<DrawnLine>& lines, std::size_t first,
                        FunctionRef<bool(std::size_t, std::size_t)> look_alike) {
  constexpr std::size_t longest = 4, fewest_times = 2;
  for (std::size_t length = 1; length <= longest; ++length) {
    std::size_t end = first + length;
    while (end < lines.size() && look_alike(end, end - length)) ++end;
    const std::size_t times = (end - first) / length - 1;
    if (end <= lines.size() && times >= fewest_times)
      return {lines[first + length].first, lines[first + length * (times + 1) - 1].end, length,
              times};
  }
  return {0, 0};
}

}  // namespace

StackFrames frames_of(const IndexedReport& report, const model::Stack& stack) {
  StackFrames frames;
  for (const model::Id id : stack.frames)
    if (const model::Frame* const frame = report.frame(id)) frames.push_back(frame);
  return frames;
}

NamedFrame named(const IndexedReport& report, const model::Frame& frame) {
  const model::Module* const module = report.module(frame.module);
  return named_frame(frame, module == nullptr ? std::string_view() : module->path);
}

const model::Frame* users_frame_of(const IndexedReport& report, const StackFrames& frames) {
  std::vector<NamedFrame> all;
  for (const model::Frame* const frame : frames) all.push_back(named(report, *frame));
  const auto users = users_frame(all);
  return users ? frames[*users] : nullptr;
}

void leave_out_the_known(StackFrames& frames) {
  const auto first = std::ranges::find_if(
      frames, [](const model::Frame* frame) { return frame->library != cuda_library; });
  if (first != frames.end()) frames.erase(frames.begin(), first);
  const auto last = std::ranges::find_if(frames.rbegin(), frames.rend(), [](const auto* frame) {
    const std::string& function = frame->function ? *frame->function : std::string();
    return function != "_start" && frame->library != system_libraries;
  });
  if (last != frames.rend()) frames.erase(last.base(), frames.end());
}

std::vector<DrawnLine> lines_of_frames(const StackFrames& frames, const Style& style) {
  std::vector<DrawnLine> lines;
  for (std::size_t at = 0; at < frames.size(); at = lines.back().end)
    lines.push_back({at, end_of_library(frames, at, style)});
  return lines;
}

std::vector<DrawnLine> without_repetitions(const std::vector<DrawnLine>& all,
                                           std::size_t most_lines,
                                           FunctionRef<bool(std::size_t, std::size_t)> look_alike) {
  std::vector<DrawnLine> shown;
  for (std::size_t at = 0; at < all.size() && shown.size() < most_lines;) {
    const DrawnLine repeating = repetition_of(all, at, look_alike);
    const std::size_t length = std::max<std::size_t>(repeating.repeated, 1);
    for (std::size_t i = 0; i < length && shown.size() < most_lines; ++i)
      shown.push_back(all[at + i]);
    if (repeating.repeated != 0 && shown.size() < most_lines) shown.push_back(repeating);
    at += length * (repeating.times + 1);
  }
  return shown;
}

FrameWords words_of(const IndexedReport& report, const model::Frame& frame, const Style& style) {
  const std::string path = text_or(frame.file, "");
  FrameWords words{std::string(style.shows_full_stacks() ? path : with_one_folder(path)),
                   text_or(frame.function, "")};
  if (!style.shows_full_stacks()) words.function = short_name(words.function);
  if (!words.location.empty()) {
    if (frame.line.value_or(0) != 0) words.location += ":" + std::to_string(frame.line.value_or(0));
  } else if (std::string module = printable(report.module_name(frame.module)); !module.empty()) {
    words.location = std::move(module) + "+" + address_text(frame.offset.value_or(0));
  } else {
    words.location = text_or(frame.address, words.function.empty() ? "unknown code" : "");
  }
  if (frame.inlined) words.function += " (inlined)";
  return words;
}

std::string frame_line(const IndexedReport& report, const model::Frame& frame, std::size_t width,
                       const Style& style) {
  const FrameWords words = words_of(report, frame, style);
  if (words.function.empty() || words.location.empty()) return words.location + words.function;
  return padded(words.location, width) + "  " + words.function;
}

std::string counting_line(const IndexedReport& report, const StackFrames& frames,
                          const DrawnLine& line, const Style& style) {
  const model::Frame& frame = *frames[line.first];
  const std::string count = "… " + std::to_string(line.end - line.first);
  if (line.repeated == 0) return count + " frames of " + text_or(frame.library, "");
  if (line.repeated > 1)
    return count + " more frames: these " + std::to_string(line.repeated) + " lines " +
           std::to_string(line.times) + " more times";
  const FrameWords words = words_of(report, frame, style);
  return count + " more of " + (words.function.empty() ? words.location : words.function);
}

std::string location_line(const IndexedReport& report, const model::Frame& frame) {
  return "at " + printable(short_location_text(named(report, frame)));
}

const char* why_cut(const IndexedReport& report, const model::Stack& stack) {
  constexpr unsigned any_depth = ~0U;
  for (const model::Setting& setting : report->settings) {
    if (setting.name != "CUWARDEN_STACK_DEPTH") continue;
    const auto depth = parse_number(setting.value.value_or(""), any_depth);
    if (depth && stack.frames.size() >= *depth)
      return "the stack was cut here (CUWARDEN_STACK_DEPTH)";
  }
  return "the outer frames were not recorded";
}

}  // namespace cuwarden
