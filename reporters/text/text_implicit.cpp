#include "reporters/text/text_implicit.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

constexpr std::size_t most_implicit_groups = 4, most_implicit_lines = 6, most_sharers = 3;
constexpr std::uint64_t least_bytes = 1 << 20;

std::string objects(const std::string& item, std::uint64_t count) {
  const bool one = count == 1;
  const std::string number = human_count(count);
  if (item == "streams") return number + (one ? " stream" : " streams");
  if (item == "graphs") return number + (one ? " executable graph" : " executable graphs");
  if (item == "modules") return number + (one ? " module" : " modules");
  if (item == "context") return number + (one ? " context" : " contexts");
  if (item == "local_memory") return "the local memory of kernels";
  if (item == "heap") return "the heap of device-side malloc";
  return number + " of " + printable(item);
}

std::uint64_t all_bytes(const model::ImplicitGroup& group) {
  return group.bytes.value_or(0) + group.kept_bytes.value_or(0);
}

// Adds a line for each other call whose objects have parts of the same bytes.
void add_sharers(const IndexedReport& report, const model::ImplicitGroup& group, const Style& style,
                 std::string& text) {
  const std::size_t count = group.shared_with.size(), shown = std::min(count, most_sharers);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string frame = calling_location(report, group.shared_with[i]).location;
    text += style.dim("       shared with a call at " +
                      (frame.empty() ? "an unknown function" : frame)) +
            "\n";
  }
  if (shown < count)
    text +=
        style.dim("       … and with calls at " + human_count(count - shown) +
                  (count - shown == 1 ? " more function" : " more functions") + " in the report") +
        "\n";
}

// Returns the row's bytes in words, such as "526.9 MiB" or "about 2.0 MiB".
std::string amount_of(const model::ImplicitGroup& group) {
  return (group.uncertain ? "about " : "") + human_bytes(all_bytes(group));
}

// Adds a row. `width`: columns of the bytes, which stand flush right.
void add_group(const IndexedReport& report, const model::ImplicitGroup& group, std::size_t width,
               const Style& style, std::string& text) {
  const std::uint64_t count = group.count.value_or(0), ended = group.released_count.value_or(0),
                      kept = group.kept_bytes.value_or(0);
  const std::string amount = amount_of(group);
  text += "    " + std::string(width - amount.size(), ' ') + style.bold(amount);
  if (count != 0)
    text += (group.shared ? " (shared equally) in " : " in ") + objects(group.item, count);
  else
    text += " of " + objects(group.item, ended) + " that ended";
  text += (group.device ? " · GPU " + std::to_string(*group.device) : "") + " · " +
          text_or(group.api, "unknown call");
  if (count != 0 && ended != 0) text += " · " + human_count(ended) + " more ended";
  if (kept >= least_bytes)
    text += " · the driver keeps " + (count == 0 ? "it" : human_bytes(kept) + " of it") +
            (group.item == "context" ? " until the primary context ends" : " for later ones");
  if (group.growth == "growing") text += " · " + style.red("growing");
  text += "\n";
  add_stack(report, group.stack, most_implicit_lines, style, text);
  add_sharers(report, group, style, text);
}

}  // namespace

void add_implicit(const IndexedReport& report, const Style& style, std::string& text) {
  std::vector<const model::ImplicitGroup*> live;
  std::uint64_t bytes = 0;
  for (const model::ImplicitGroup& group : report->implicit_groups) {
    if (group.count.value_or(0) == 0 && group.kept_bytes.value_or(0) == 0) continue;
    live.push_back(&group);
    bytes += all_bytes(group);
  }
  if (bytes < least_bytes) return;
  const std::vector<model::ImplicitGroup> groups = merged_rows(
      report, live,
      [](const model::ImplicitGroup& group) {
        return std::tuple(group.item, group.device, group.api);
      },
      style);
  const std::size_t shown = std::min(groups.size(), most_implicit_groups);
  text += "\n" + style.bold("TAKEN BY THE DRIVER") + ": " + human_bytes(bytes) +
          " for contexts, modules, kernels, streams and graphs, " +
          (shown == groups.size() ? "all" : "most") + " of it for\n";
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, amount_of(groups[i]).size());
  for (std::size_t i = 0; i < shown; ++i) add_group(report, groups[i], width, style, text);
  if (shown == groups.size()) return;
  std::uint64_t rest = 0;
  for (std::size_t i = shown; i < groups.size(); ++i) rest += all_bytes(groups[i]);
  text += style.dim("    … " + human_bytes(rest) + " from " + human_count(groups.size() - shown) +
                    " more in the report's table implicit_groups") +
          "\n";
}

}  // namespace cuwarden
