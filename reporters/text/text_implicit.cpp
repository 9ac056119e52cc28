#include "reporters/text/text_implicit.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "reporters/text/merged_rows.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

constexpr std::size_t most_groups = 4, most_frames = 6;
constexpr std::uint64_t least_bytes = 1 << 20;

std::string objects(const std::string& item, std::uint64_t count) {
  const bool one = count == 1;
  const std::string number = human_count(count);
  if (item == "streams") return number + (one ? " stream" : " streams");
  if (item == "graphs") return number + (one ? " executable graph" : " executable graphs");
  if (item == "modules") return number + (one ? " piece of code" : " pieces of code");
  if (item == "context") return number + (one ? " context" : " contexts");
  if (item == "local_memory") return "the local memory of kernels";
  if (item == "heap") return "the heap of device-side malloc";
  return number + " of " + printable(item);
}

void add_group(const IndexedReport& report, const model::ImplicitGroup& group, const Paint& paint,
               std::string& text) {
  text += "    " +
          paint.bold((group.uncertain ? "about " : "") + human_bytes(group.bytes.value_or(0))) +
          (group.shared ? " (shared equally)" : "") + " in " +
          objects(group.item, group.count.value_or(0)) +
          (group.device ? " · GPU " + std::to_string(*group.device) : "") + " · " +
          text_or(group.api, "unknown call");
  if (const std::uint64_t ended = group.released_count.value_or(0))
    text += " · " + human_count(ended) + " more ended";
  if (group.growth == "growing") text += " · " + paint.red("growing");
  text += "\n";
  add_stack(report, group.stack, most_frames, paint, text);
}

}  // namespace

void add_implicit(const IndexedReport& report, const Paint& paint, std::string& text) {
  std::vector<const model::ImplicitGroup*> live;
  std::uint64_t bytes = 0;
  for (const model::ImplicitGroup& group : report->implicit_groups) {
    if (group.count.value_or(0) == 0) continue;
    live.push_back(&group);
    bytes += group.bytes.value_or(0);
  }
  if (bytes < least_bytes) return;
  const std::vector<model::ImplicitGroup> groups =
      merged_rows(report, live, [](const model::ImplicitGroup& group) {
        return std::tuple(group.item, group.device, group.api);
      });
  text += "\n  " + human_bytes(bytes) +
          " were taken by the driver for contexts, code, kernels, streams and graphs, most of it "
          "for\n";
  const std::size_t shown = std::min(groups.size(), most_groups);
  for (std::size_t i = 0; i < shown; ++i) add_group(report, groups[i], paint, text);
  if (shown == groups.size()) return;
  std::uint64_t rest = 0;
  for (std::size_t i = shown; i < groups.size(); ++i) rest += groups[i].bytes.value_or(0);
  text += paint.dim("    … " + human_bytes(rest) + " from " + human_count(groups.size() - shown) +
                    " more in the report's table implicit_groups") +
          "\n";
}

}  // namespace cuwarden
