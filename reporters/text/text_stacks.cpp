#include "reporters/text/text_stacks.hpp"

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

std::string frame_line(const IndexedReport& report, const model::Frame& frame, const Style& style) {
  std::string function = text_or(frame.function, "");
  if (!style.shows_full_stacks()) function = short_name(function);
  std::string module = printable(report.module_name(frame.module));
  if (module.empty()) {
    module = text_or(frame.address, "unknown code");
  } else {
    module += "+" + address_text(frame.offset.value_or(0));
  }
  std::string location = text_or(frame.file, "");
  if (!location.empty() && frame.line.value_or(0) != 0) {
    location += ":" + std::to_string(frame.line.value_or(0));
  }
  if (location.empty() && !function.empty()) location = module;
  std::string line = function.empty() ? module : function;
  if (!location.empty()) line += "  " + style.dim(location);
  if (frame.inlined) line += style.dim(" (inlined)");
  return line;
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

void add_location(const IndexedReport& report, const model::Frame& frame, const Style& style,
                  std::string& text) {
  text +=
      "       " + style.bold("at " + printable(short_location_text(named(report, frame)))) + "\n";
}

}  // namespace

std::string visible_frame(const IndexedReport& report, model::Id id) {
  const model::Frame* const frame = report.frame(id);
  return frame == nullptr ? "" : frame_line(report, *frame, Style(false, true));
}

std::string calling_frame(const IndexedReport& report, model::Id id) {
  const model::Stack* const stack = report.stack(id);
  if (stack == nullptr) return "";
  const Frames frames = frames_of(report, *stack);
  const model::Frame* const users = users_frame_of(report, frames);
  if (users == nullptr && frames.empty()) return "";
  return frame_line(report, users == nullptr ? *frames.front() : *users, Style(false));
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
  return {printable(std::move(pattern)), printable(std::string(frame.file)), frame.line,
          printable(std::move(function)), printable(short_location_text(frame))};
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
  // The headline names the call; the frames of CUDA's libraries inside it are left out.
  const auto first = std::ranges::find_if(
      frames, [](const model::Frame* frame) { return frame->library != cuda_library; });
  if (first != frames.end() && !style.shows_full_stacks()) frames.erase(frames.begin(), first);
  if (style.shows_full_stacks()) most_lines = frames.size();
  if (users != nullptr && users != frames.front()) add_location(report, *users, style, text);
  std::size_t at = 0;
  for (std::size_t lines = 0; at < frames.size() && lines < most_lines; ++lines) {
    const std::size_t end = end_of_library(frames, at, style);
    if (end - at > 1) {
      text += style.dim("       … " + std::to_string(end - at) + " frames of " +
                        text_or(frames[at]->library, "")) +
              "\n";
    } else {
      text += "       " + padded("#" + std::to_string(at), 4) +
              frame_line(report, *frames[at], style) + "\n";
    }
    at = end;
  }
  if (at < frames.size()) {
    text +=
        style.dim("       … " + std::to_string(frames.size() - at) +
                  (frames.size() - at == 1 ? " more frame" : " more frames") + " in the report") +
        "\n";
  }
  if (stack->truncated) {
    text += style.dim(std::string("       … ") + why_cut(report, *stack)) + "\n";
  }
}

}  // namespace cuwarden
