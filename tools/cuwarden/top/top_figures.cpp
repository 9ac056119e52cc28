#include "tools/cuwarden/top/top_figures.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "reporters/text/elements/text_elements.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

constexpr const char* not_known_yet = "-";

}  // namespace

std::string bytes_text(const model::Figure& bytes) { return human_bytes(bytes.value_or(0)); }

std::string count_text(const model::Figure& count) { return human_count(count.value_or(0)); }

std::string per_minute_text(std::uint64_t bytes_per_minute) {
  return human_bytes(bytes_per_minute) + "/min";
}

std::string growth_text(const model::SignedFigure& bytes_per_minute) {
  if (!bytes_per_minute) return not_known_yet;
  const std::int64_t bytes = *bytes_per_minute;
  if (bytes == 0) return "0";
  return (bytes < 0 ? "-" : "+") + per_minute_text(static_cast<std::uint64_t>(std::abs(bytes)));
}

std::string rate_text(const model::SignedFigure& per_minute) {
  if (!per_minute) return not_known_yet;
  const double value = std::max(static_cast<double>(*per_minute) / 60, 0.0);
  char text[32];
  std::snprintf(text, sizeof text, value < 99.95 ? "%.1f" : "%.0f", value);
  return text;
}

std::string memory_text(const std::string& kind, const model::MaybeId& device) {
  if (kind != kind_name(Kind::framework_block)) return memory_name(kind, device);
  return "blocks of frameworks" + (device ? " (GPU " + std::to_string(*device) + ")" : "");
}

std::string program_text(const ProcessRow& process) {
  return printable(std::string(file_name(process.program.value_or(""))));
}

std::string age_text(const ProcessRow& process) {
  return human_time(process.running_ns.value_or(0));
}

std::string growing_mark(const StackRow& stack) {
  if (const auto step = stack.keeps_growing_bytes_per_step)
    return "[grows " + human_bytes(*step) + " a step since step " +
           human_count(stack.keeps_growing_since_step.value_or(0)) + "] ";
  const auto rate = stack.keeps_growing_bytes_per_minute;
  return rate ? "[grows " + per_minute_text(*rate) + "] " : "";
}

std::string waiting_text(const WaitingRow& request) {
  std::string line = "waits for memory: " + request.api.value_or("a request") +
                     (request.bytes ? " of " + bytes_text(request.bytes) : "") + " (" +
                     (request.device ? "GPU " + std::to_string(*request.device)
                                     : memory_name(request.kind, std::nullopt)) +
                     "), rung " + request.rung + " for " +
                     human_time(request.duration_ns.value_or(0));
  if (request.where) line += ": " + *request.where;
  return line;
}

}  // namespace cuwarden
