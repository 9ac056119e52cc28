#include "reporters/text_elements.hpp"

#include <algorithm>
#include <vector>

#include "reporters/cuda_frames.hpp"
#include "reporters/printable.hpp"
#include "reporters/quantities.hpp"

namespace cuwarden {

using nlohmann::json;

std::uint64_t number_of(const json& row, const char* name) {
  const auto value = row.find(name);
  return value == row.end() || !value->is_number_unsigned() ? 0 : value->get<std::uint64_t>();
}

std::string text_of(const json& row, const char* name, const char* otherwise) {
  const auto value = row.find(name);
  return value == row.end() || !value->is_string() ? otherwise
                                                   : printable(value->get<std::string>());
}

std::string allocations(std::uint64_t count) {
  return human_count(count) + (count == 1 ? " allocation" : " allocations");
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string place_of(const json& row) {
  std::string kind = text_of(row, "kind", "unknown");
  if (kind == "device") kind = "device memory";
  if (!row.at("device").is_number_integer()) return kind;
  return kind + " (GPU " + std::to_string(row.at("device").get<int>()) + ")";
}

std::optional<std::string> visible_devices(const ReportDocument& report) {
  const json& job = report.root().at("job");
  const auto value = job.find("visible_devices");
  if (value == job.end() || !value->is_string()) return std::nullopt;
  return "CUDA_VISIBLE_DEVICES=" + printable(value->get<std::string>());
}

bool was_running(const ReportDocument& report) {
  return text_of(report.root().at("process"), "end_reason", "") == "running";
}

bool was_at_work(const ReportDocument& report) {
  const std::string reason = text_of(report.root().at("process"), "end_reason", "");
  return reason == "signal" || reason == "abort" || reason.empty();
}

namespace {

bool in_cuda_library(const ReportDocument& report, const json& frame) {
  const json* module = report.module(frame.at("module"));
  const std::string path = module == nullptr ? "" : text_of(*module, "path", "");
  return is_cuda_frame(path, text_of(frame, "function", ""), text_of(frame, "file", ""));
}

std::string frame_line(const ReportDocument& report, const json& frame, const Paint& paint) {
  const std::string function = text_of(frame, "function", "");
  std::string module = printable(report.module_name(frame.at("module")));
  if (module.empty()) {
    module = text_of(frame, "address", "unknown code");
  } else {
    module += "+" + address_text(number_of(frame, "offset"));
  }
  std::string place = text_of(frame, "file", "");
  if (!place.empty() && number_of(frame, "line") != 0) {
    place += ":" + std::to_string(number_of(frame, "line"));
  }
  if (place.empty() && !function.empty()) place = module;
  std::string line = function.empty() ? module : function;
  if (!place.empty()) line += "  " + paint.dim(place);
  if (frame.at("inlined") == true) line += paint.dim(" (inlined)");
  return line;
}

}  // namespace

std::string visible_frame(const ReportDocument& report, const json& id) {
  const json* const frame = report.frame(id);
  return frame == nullptr ? "" : frame_line(report, *frame, Paint(false));
}

void add_stack(const ReportDocument& report, const json& row, std::size_t most_frames,
               const Paint& paint, std::string& text) {
  const json* stack = report.stack(row.at("stack"));
  if (stack == nullptr || stack->at("frames").empty()) {
    text += paint.dim("       no stack was recorded") + std::string("\n");
    return;
  }
  std::vector<const json*> frames;
  for (const json& id : stack->at("frames")) {
    if (const json* frame = report.frame(id)) frames.push_back(frame);
  }
  // The headline names the call; what CUDA's libraries do inside it helps nobody.
  const auto first = std::find_if(frames.begin(), frames.end(), [&](const json* frame) {
    return !in_cuda_library(report, *frame);
  });
  if (first != frames.end()) frames.erase(frames.begin(), first);
  const std::size_t shown = std::min(frames.size(), most_frames);
  for (std::size_t i = 0; i < shown; ++i) {
    text += "       " + padded("#" + std::to_string(i), 4) + frame_line(report, *frames[i], paint) +
            "\n";
  }
  if (shown < frames.size()) {
    text += paint.dim("       … " + std::to_string(frames.size() - shown) +
                      " more frames in the report") +
            "\n";
  }
  if (stack->at("truncated") == true) {
    text += paint.dim("       … the stack was cut here (CUWARDEN_STACK_DEPTH)") + "\n";
  }
}

}  // namespace cuwarden
