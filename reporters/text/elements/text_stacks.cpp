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

// A line about frames of a stack: about one frame in words, or about several that it counts.
struct StackLine {
  std::size_t first, end;  // indices of the line's frames: from `first` to the one before `end`
  // Number of lines above whose frames the line's frames repeat; 0: frames of a library.
  std::size_t repeated = 0;
  // Number of times that the line's frames repeat those of the lines above.
  std::size_t times = 0;
  // True if the line shows its only frame in words; false if it counts frames.
  bool has_words() const { return end - first == 1 && repeated == 0; }
};

// Returns the text of a line that counts frames of a library, or frames that repeat those above.
std::string counting_line(const IndexedReport& report, const Frames& frames, const StackLine& line,
                          const Style& style) {
  const model::Frame& frame = *frames[line.first];
  const std::string count = "… " + std::to_string(line.end - line.first);
  if (line.repeated == 0) return count + " frames of " + text_or(frame.library, "");
  if (line.repeated > 1)
    return count + " more frames: these " + std::to_string(line.repeated) + " lines " +
           std::to_string(line.times) + " more times";
  const FrameWords words = words_of(report, frame, style);
  return count + " more of " + (words.function.empty() ? words.location : words.function);
}

// Finds lines with the texts of the lines before, as those of a recursion have. The text of a line
// is made when it is first compared, since most stacks are longer than what is shown of them.
class Repetitions {
 public:
  // Keeps references to the arguments. `lines`: lines about all frames, without those that repeat
  // others.
  Repetitions(const IndexedReport& report, const Frames& frames,
              const std::vector<StackLine>& lines, const Style& style)
      : report_(report), frames_(frames), lines_(lines), style_(style), texts_(lines.size()) {}

  // Returns the line that counts the frames which repeat those of the lines from index `first` on.
  // StackLine::repeated is the number of these lines, from 1 to 4; it is 0 if they are not repeated
  // at least twice.
  StackLine of(std::size_t first) {
    constexpr std::size_t longest = 4, fewest_times = 2;
    for (std::size_t length = 1; length <= longest; ++length) {
      std::size_t end = first + length;
      while (end < lines_.size() && text_of(end) == text_of(end - length)) ++end;
      const std::size_t times = (end - first) / length - 1;
      if (end <= lines_.size() && times >= fewest_times)
        return {lines_[first + length].first, lines_[first + length * (times + 1) - 1].end, length,
                times};
    }
    return {0, 0};
  }

 private:
  const std::string& text_of(std::size_t line) {
    std::string& text = texts_[line];
    const StackLine& made = lines_[line];
    if (text.empty())
      text = made.has_words() ? frame_line(report_, *frames_[made.first], 0, style_)
                              : counting_line(report_, frames_, made, style_);
    return text;
  }

  const IndexedReport& report_;          // report that has the frames; not owned
  const Frames& frames_;                 // frames of the stack; not owned
  const std::vector<StackLine>& lines_;  // lines about all frames; not owned
  const Style& style_;                   // look of the lines; not owned
  std::vector<std::string> texts_;       // texts of lines_; empty: not made yet
};

// Returns the lines about the frames, at most `most_lines`.
std::vector<StackLine> lines_about(const IndexedReport& report, const Frames& frames,
                                   std::size_t most_lines, const Style& style) {
  std::vector<StackLine> all, shown;
  for (std::size_t at = 0; at < frames.size(); at = all.back().end)
    all.push_back({at, end_of_library(frames, at, style)});
  if (style.shows_full_stacks()) return all;
  Repetitions repetitions(report, frames, all, style);
  for (std::size_t at = 0; at < all.size() && shown.size() < most_lines;) {
    const StackLine repeating = repetitions.of(at);
    const std::size_t length = std::max<std::size_t>(repeating.repeated, 1);
    for (std::size_t i = 0; i < length && shown.size() < most_lines; ++i)
      shown.push_back(all[at + i]);
    if (repeating.repeated != 0 && shown.size() < most_lines) shown.push_back(repeating);
    at += length * (repeating.times + 1);
  }
  return shown;
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
  if (!style.shows_full_stacks()) leave_out_the_known(frames);
  if (users != nullptr && users != frames.front()) add_location(report, *users, style, text);
  const std::vector<StackLine> lines = lines_about(report, frames, most_lines, style);
  std::size_t width = 0;
  for (const StackLine& line : lines)
    if (line.has_words())
      width = std::max(width, words_of(report, *frames[line.first], style).location.size());
  constexpr std::size_t most_width = 40;  // so that a long path does not push all functions away
  for (const StackLine& line : lines) {
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
