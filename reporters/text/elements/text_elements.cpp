#include "reporters/text/elements/text_elements.hpp"

#include <algorithm>
#include <cstddef>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

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
  if (kind == "framework_block") return number + " block" + plural;
  return allocations(count);
}

std::string name_of_step(const model::NamedStep& step) {
  const std::string name = printable(step.name);
  return name.find_first_of(" ,") == name.npos ? name : '"' + name + '"';
}

std::string sizes_of(const model::NamedStep& step) {
  return (step.bytes ? human_bytes(*step.bytes) : "unknown bytes") + " in " +
         (step.count ? allocations(*step.count) : "an unknown number of allocations");
}

std::string words_of_steps(const std::vector<model::NamedStep>& steps, std::uint64_t count) {
  constexpr std::size_t most_named = 3;
  std::string text;
  std::uint64_t in_steps = 0;
  bool is_known = true;
  for (const model::NamedStep& step : steps) {
    in_steps += step.count.value_or(0);
    is_known &= step.count.has_value();
  }
  for (std::size_t i = 0; i < std::min(steps.size(), most_named); ++i) {
    text += (text.empty() ? "in " : ", ") + name_of_step(steps[i]);
    if (steps.size() > 1 || in_steps < count) text += " (" + sizes_of(steps[i]) + ")";
  }
  if (steps.size() > most_named)
    text += ", and in " + human_count(steps.size() - most_named) +
            " more (field `named_steps` of the report)";
  if (!steps.empty() && is_known && in_steps < count)
    text += "; " + allocations(count - in_steps) + " outside of named steps";
  return text;
}

std::string memory_name(const std::string& kind, model::MaybeId device) {
  std::string name = printable(kind);
  if (kind == "device" || kind == "framework_block") name = "device memory";
  if (kind == "pinned" || kind == "registered") name = kind + " host memory";
  if (kind == "managed" || kind == "imported") name = kind + " memory";
  if (kind == "stream_ordered") name = "stream-ordered memory";
  if (kind == "vmm") name = "virtual memory";
  if (kind == "array") name = "arrays";
  if (kind == "graph") name = "memory of graphs";
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

bool is_end_at_work(const model::Text& end_reason) {
  const std::string reason = end_reason.value_or("");
  return reason == "signal" || reason == "abort" || reason.empty();
}

bool was_at_work(const IndexedReport& report) { return is_end_at_work(report->process.end_reason); }

}  // namespace cuwarden
