#include "reporters/text/text_elements.hpp"

#include <algorithm>
#include <vector>

#include "reporters/owners/cuda_frames.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/setting_values.hpp"

namespace cuwarden {

std::string text_or(const model::Text& text, const char* otherwise) {
  return text ? printable(*text) : otherwise;
}

std::string allocations(std::uint64_t count) {
  return human_count(count) + (count == 1 ? " allocation" : " allocations");
}

std::string counted(std::uint64_t count, const std::string& kind) {
  const std::string number = human_count(count), plural = count == 1 ? "" : "s";
  if (kind == "stream" || kind == "module" || kind == "context")
    return number + " " + kind + plural;
  if (kind == "local_memory" || kind == "heap") return number + " piece" + plural;
  if (kind == "graph_exec") return number + " executable graph" + plural;
  return allocations(count);
}

std::string memory_name(const std::string& kind, model::MaybeId device) {
  std::string name = printable(kind);
  if (kind == "device") name = "device memory";
  if (kind == "graph_exec") name = "executable graphs";
  if (kind == "stream" || kind == "module" || kind == "context") name = kind + "s";
  if (kind == "local_memory") name = "local memory";
  if (kind == "heap") name = "device heap";
  return device ? name + " (GPU " + std::to_string(*device) + ")" : name;
}

std::optional<std::string> visible_devices(const IndexedReport& report) {
  const model::Text& value = report->job.visible_devices;
  if (!value) return std::nullopt;
  return "CUDA_VISIBLE_DEVICES=" + printable(*value);
}

bool was_running(const IndexedReport& report) { return report->process.end_reason == "running"; }

bool was_at_work(const IndexedReport& report) {
  const std::string reason = report->process.end_reason.value_or("");
  return reason == "signal" || reason == "abort" || reason.empty();
}

namespace {

bool in_cuda_library(const IndexedReport& report, const model::Frame& frame) {
  const model::Module* module = report.module(frame.module);
  return is_cuda_frame(module == nullptr ? "" : printable(module->path),
                       text_or(frame.function, ""), text_or(frame.file, ""));
}

std::string frame_line(const IndexedReport& report, const model::Frame& frame, const Paint& paint) {
  const std::string function = text_or(frame.function, "");
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
  if (!location.empty()) line += "  " + paint.dim(location);
  if (frame.inlined) line += paint.dim(" (inlined)");
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

}  // namespace

std::string visible_frame(const IndexedReport& report, model::Id id) {
  const model::Frame* const frame = report.frame(id);
  return frame == nullptr ? "" : frame_line(report, *frame, Paint(false));
}

namespace {

// Returns the frames of a stack, innermost first, without the innermost ones that lie inside CUDA's
// libraries; if all do, all.
std::vector<const model::Frame*> callers_frames(const IndexedReport& report,
                                                const model::Stack& stack) {
  std::vector<const model::Frame*> frames;
  for (const model::Id frame_id : stack.frames) {
    if (const model::Frame* frame = report.frame(frame_id)) frames.push_back(frame);
  }
  const auto first = std::find_if(frames.begin(), frames.end(), [&](const model::Frame* frame) {
    return !in_cuda_library(report, *frame);
  });
  if (first != frames.end()) frames.erase(frames.begin(), first);
  return frames;
}

}  // namespace

std::string calling_frame(const IndexedReport& report, model::Id id) {
  const model::Stack* stack = report.stack(id);
  if (stack == nullptr) return "";
  const std::vector<const model::Frame*> frames = callers_frames(report, *stack);
  return frames.empty() ? "" : frame_line(report, *frames.front(), Paint(false));
}

void add_stack(const IndexedReport& report, model::MaybeId id, std::size_t most_frames,
               const Paint& paint, std::string& text) {
  const model::Stack* stack = report.stack(id);
  if (stack == nullptr || stack->frames.empty()) {
    text += paint.dim("       no stack was recorded") + std::string("\n");
    return;
  }
  // The headline names the call; the frames of CUDA's libraries inside it are left out.
  const std::vector<const model::Frame*> frames = callers_frames(report, *stack);
  const std::size_t shown = std::min(frames.size(), most_frames);
  for (std::size_t i = 0; i < shown; ++i) {
    text += "       " + padded("#" + std::to_string(i), 4) + frame_line(report, *frames[i], paint) +
            "\n";
  }
  if (shown < frames.size()) {
    text += paint.dim("       … " + std::to_string(frames.size() - shown) +
                      (frames.size() - shown == 1 ? " more frame" : " more frames") +
                      " in the report") +
            "\n";
  }
  if (stack->truncated) {
    text += paint.dim(std::string("       … ") + why_cut(report, *stack)) + "\n";
  }
}

}  // namespace cuwarden
