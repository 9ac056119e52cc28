#include "reporters/text/elements/text_stacks.hpp"

#include <algorithm>
#include <vector>

#include "reporters/labels/report_frames.hpp"
#include "reporters/labels/users_frame.hpp"
#include "reporters/owners/short_names.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/setting_values.hpp"

namespace cuwarden {
namespace {

using Frames = std::vector<const model::Frame*>;

// A frame in words: where its code is, and the function that the code belongs to.
struct FrameWords {
  std::string location, function;  // function: empty if it is unknown
};

// Returns the frame's words: file and line, or else module and offset, or else the code's address.
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

// Returns a line about the frame. The location is filled with spaces to `width` columns if a
// function follows.
std::string frame_line(const IndexedReport& report, const model::Frame& frame, std::size_t width,
                       const Style& style) {
  const FrameWords words = words_of(report, frame, style);
  if (words.function.empty() || words.location.empty()) return words.location + words.function;
  return padded(words.location, width) + "  " + words.function;
}

// Returns the reason why the outer frames of a stack are missing. The setting is the reason only if
// the stack has as many frames as it allows.
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

Frames frames_of(const IndexedReport& report, const model::Stack& stack) {
  Frames frames;
  for (const model::Id id : stack.frames)
    if (const model::Frame* const frame = report.frame(id)) frames.push_back(frame);
  return frames;
}

NamedFrame named(const IndexedReport& report, const model::Frame& frame) {
  const model::Module* const module = report.module(frame.module);
  return named_frame(frame, module == nullptr ? std::string_view() : module->path);
}

// Returns the frame that a person would name for the call (users_frame()); null if there is none.
const model::Frame* users_frame_of(const IndexedReport& report, const Frames& frames) {
  std::vector<NamedFrame> all;
  for (const model::Frame* const frame : frames) all.push_back(named(report, *frame));
  const auto users = users_frame(all);
  return users ? frames[*users] : nullptr;
}

// Returns the index behind the neighbouring frames, from index `first` on, that belong to one
// library. Returns `first` + 1 if that frame is of no library, or if the style shows full stacks.
std::size_t end_of_library(const Frames& frames, std::size_t first, const Style& style) {
  std::size_t end = first + 1;
  if (style.shows_full_stacks() || !frames[first]->library) return end;
  while (end < frames.size() && frames[end]->library == frames[first]->library) ++end;
  return end;
}

// Returns the index behind the neighbouring frames, from index `first` on, that have the same words
// in the report, as those of a recursion do. Returns `first` + 1 if the style shows full stacks.
std::size_t end_of_recursion(const IndexedReport& report, const Frames& frames, std::size_t first,
                             const Style& style) {
  std::size_t end = first + 1;
  if (style.shows_full_stacks()) return end;
  const std::string line = frame_line(report, *frames[first], 0, style);
  while (end < frames.size() && frame_line(report, *frames[end], 0, style) == line) ++end;
  return end;
}

// Takes out the frames that say nothing about the program: innermost ones of CUDA's libraries,
// since the headline names the call, and outermost ones below the program's first function, such as
// those of libc that call main. If only such frames are there, all stay.
void leave_out_the_known(Frames& frames) {
  const auto first = std::ranges::find_if(
      frames, [](const model::Frame* frame) { return frame->library != cuda_library; });
  if (first != frames.end()) frames.erase(frames.begin(), first);
  const auto last = std::ranges::find_if(frames.rbegin(), frames.rend(), [](const auto* frame) {
    const std::string& function = frame->function ? *frame->function : std::string();
    return function != "_start" && frame->library != system_libraries;
  });
  if (last != frames.rend()) frames.erase(last.base(), frames.end());
}

void add_location(const IndexedReport& report, const model::Frame& frame, const Style& style,
                  std::string& text) {
  text +=
      "       " + style.bold("at " + printable(short_location_text(named(report, frame)))) + "\n";
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
  Frames frames = frames_of(report, *stack);
  const model::Frame* const users = users_frame_of(report, frames);
  if (style.shows_full_stacks()) {
    most_lines = frames.size();
  } else {
    leave_out_the_known(frames);
  }
  if (users != nullptr && users != frames.front()) add_location(report, *users, style, text);
  struct Line {
    std::size_t first, end;  // indices of the line's frames: from `first` to the one before `end`
    bool repeats = false;    // true if the frames have the words of the line before
    bool has_words() const { return end - first == 1 && !repeats; }
  };
  std::vector<Line> lines;
  for (std::size_t at = 0; at < frames.size() && lines.size() < most_lines; at = lines.back().end) {
    lines.push_back({at, end_of_library(frames, at, style)});
    if (!lines.back().has_words() || lines.size() == most_lines) continue;
    // A line that counts a single frame would not be shorter.
    if (const std::size_t end = end_of_recursion(report, frames, at, style); end - at > 2)
      lines.push_back({at + 1, end, true});
  }
  std::size_t width = 0;
  for (const Line& line : lines)
    if (line.has_words())
      width = std::max(width, words_of(report, *frames[line.first], style).location.size());
  constexpr std::size_t most_width = 40;  // so that a long path does not push all functions away
  for (const Line& line : lines) {
    const model::Frame& frame = *frames[line.first];
    const FrameWords words = words_of(report, frame, style);
    if (line.repeats)
      text += style.dim("       … " + std::to_string(line.end - line.first) + " more of " +
                        (words.function.empty() ? words.location : words.function)) +
              "\n";
    else if (!line.has_words())
      text += style.dim("       … " + std::to_string(line.end - line.first) + " frames of " +
                        text_or(frame.library, "")) +
              "\n";
    else
      text += "       " + frame_line(report, frame, std::min(width, most_width), style) + "\n";
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
