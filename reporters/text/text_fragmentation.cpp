#include "reporters/text/text_fragmentation.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/text/shown_holders.hpp"
#include "reporters/text/text_accounts.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

constexpr std::size_t most_slab_holder_lines = 3;

const model::Device* device_of(const IndexedReport& report, model::Id ordinal) {
  for (const auto& device : report->devices)
    if (device.device == ordinal) return &device;
  return nullptr;
}

template <class Holder>
void add_lockers(const IndexedReport& report, const std::vector<Holder>& table, model::Id device,
                 const char* verb, const TextOptions& options, const Style& style,
                 std::string& text) {
  std::vector<const Holder*> rows;
  for (const Holder& holder : table)
    if (holder.device == device) rows.push_back(&holder);
  std::vector<Holder> holders = merged_rows(
      report, rows, [](const Holder&) { return 0; }, style);
  std::ranges::stable_sort(holders, std::greater(),
                           [](const Holder& holder) { return holder.locked_bytes.value_or(0); });
  const std::size_t shown = shown_holders(holders.size(), options.top);
  for (std::size_t i = 0; i < shown; ++i) {
    const Holder& holder = holders[i];
    text += "    " + style.bold(human_bytes(holder.locked_bytes.value_or(0))) + verb +
            allocations(holder.count.value_or(0)) + " of " + human_bytes(holder.bytes.value_or(0)) +
            "\n";
    add_stack(report, holder.stack, most_slab_holder_lines, style, text);
  }
  std::uint64_t rest = 0;
  for (std::size_t i = shown; i < holders.size(); ++i) rest += holders[i].locked_bytes.value_or(0);
  add_left_out_holders(holders.size() - shown, rest, style, text);
}

}  // namespace

void add_fragmentation(const IndexedReport& report, const TextOptions& options, const Style& style,
                       std::string& text) {
  for (const auto& row : report->fragmentation) {
    const std::uint64_t locked = row.slab_locked_bytes.value_or(0);
    const std::uint64_t rounding = row.rounding_bytes.value_or(0);
    const model::Device* const device = device_of(report, row.device);
    const std::uint64_t used = device == nullptr ? 0 : device->used_bytes.value_or(0);
    // Without a reading of the device it is unknown how much this matters.
    if (used == 0 || locked + rounding == 0 || locked + rounding < used / least_share) continue;
    const std::uint64_t page = row.page_bytes.value_or(0), slabs = row.slab_count.value_or(0);
    const std::string pages = page == 0 ? "" : " of " + human_bytes(page);
    const bool locked_matters = locked >= rounding || locked >= used / least_share;
    const bool rounding_matters = rounding > locked || rounding >= used / least_share;
    text += "\n" + style.yellow("FRAGMENTATION") + " (GPU " + std::to_string(row.device) + "): ";
    if (locked_matters) {
      text +=
          human_bytes(locked) + " are the free parts of " + human_count(slabs) +
          (slabs == 1 ? " slab" : " slabs") + pages +
          ". Only small requests of this process can use them: the driver gives a slab back when "
          "its last piece is freed\n";
    }
    if (rounding_matters) {
      text += (locked_matters ? "  " : "") + human_bytes(rounding) +
              " are lost to rounding: a request that no slab serves takes whole pages" + pages +
              "\n";
    }
    if (row.largest_request_bytes) {
      const std::uint64_t largest = *row.largest_request_bytes;
      text += "  when the device was read, " +
              (largest == 0
                   ? std::string("no large request could succeed")
                   : "a request of " + human_bytes(largest) + " could succeed, none much larger") +
              "\n";
    }
    if (locked_matters)
      add_lockers(report, report->slab_holders, row.device, " locked by ", options, style, text);
  }
}

void add_worst_fragmentation(const IndexedReport& report, const TextOptions& options,
                             const Style& style, std::string& text) {
  for (const auto& row : report->worst_fragmentation) {
    const std::uint64_t locked = row.slab_locked_bytes.value_or(0);
    const model::Device* const device = device_of(report, row.device);
    const std::uint64_t total = device == nullptr ? 0 : device->total_bytes.value_or(0);
    std::uint64_t at_exit = 0;
    for (const auto& now : report->fragmentation)
      if (now.device == row.device) at_exit = now.slab_locked_bytes.value_or(0);
    // Fragmentation that is much the same at the end has its own section.
    if (total == 0 || locked < total / 2 / least_share || locked < at_exit + at_exit / 4) continue;
    text += "\n" + style.yellow("FRAGMENTATION AT ITS WORST") + " (GPU " +
            std::to_string(row.device) + "), after " + human_time(row.time_ns.value_or(0)) + ": " +
            human_bytes(locked) + " were the free parts of " +
            human_count(row.slab_count.value_or(0)) + " slabs\n";
    add_lockers(report, report->worst_slab_holders, row.device, " was locked by ", options, style,
                text);
  }
}

}  // namespace cuwarden
