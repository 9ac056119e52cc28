#include <algorithm>
#include <string>
#include <vector>

#include "reporters/merged_rows.hpp"
#include "reporters/quantities.hpp"
#include "reporters/text_memory.hpp"

namespace cuwarden {
namespace {

using nlohmann::json;

constexpr std::size_t most_holders = 3, most_frames = 3;

const json* device_of(const ReportDocument& report, const json& row) {
  for (const json& device : report.table("devices"))
    if (is_of(row, device)) return &device;
  return nullptr;
}

void add_lockers(const ReportDocument& report, const char* table, const json& device,
                 const char* verb, const Paint& paint, std::string& text) {
  std::vector<const json*> rows;
  for (const json& holder : report.table(table))
    if (is_of(holder, device)) rows.push_back(&holder);
  std::vector<json> holders = MergedRows(report).of(rows, {});
  std::ranges::stable_sort(holders, [](const json& left, const json& right) {
    return number_of(left, "locked_bytes") > number_of(right, "locked_bytes");
  });
  for (std::size_t i = 0; i < holders.size() && i < most_holders; ++i) {
    const json& holder = holders[i];
    text += "    " + paint.bold(human_bytes(number_of(holder, "locked_bytes"))) + verb +
            allocations(number_of(holder, "count")) + " of " +
            human_bytes(number_of(holder, "bytes")) + "\n";
    add_stack(report, holder, most_frames, paint, text);
  }
}

}  // namespace

void add_fragmentation(const ReportDocument& report, const Paint& paint, std::string& text) {
  for (const json& row : report.table("fragmentation")) {
    const std::uint64_t locked = number_of(row, "slab_locked_bytes");
    const std::uint64_t rounding = number_of(row, "rounding_bytes");
    const json* const device = device_of(report, row);
    const std::uint64_t used = device == nullptr ? 0 : number_of(*device, "used_bytes");
    // Without a reading nobody can say how much it matters.
    if (used == 0 || locked + rounding == 0 || locked + rounding < used / least_share) continue;
    const std::uint64_t page = number_of(row, "page_bytes"), slabs = number_of(row, "slab_count");
    const std::string pages = page == 0 ? "" : " of " + human_bytes(page);
    const bool locked_matters = locked >= rounding || locked >= used / least_share;
    const bool rounding_matters = rounding > locked || rounding >= used / least_share;
    text += "\n" + paint.yellow("FRAGMENTATION") + " (GPU " +
            std::to_string(number_of(row, "device")) + "): ";
    if (locked_matters) {
      text +=
          human_bytes(locked) + " are the free parts of " + human_count(slabs) +
          (slabs == 1 ? " slab" : " slabs") + pages +
          ". Only small requests of this process can use them: the driver gives a slab back when "
          "its last piece is freed\n";
    }
    if (rounding_matters) {
      text += (locked_matters ? "  " : "") + human_bytes(rounding) +
              " are lost to rounding: what does not come from a slab takes whole pages" + pages +
              "\n";
    }
    if (row.at("largest_request_bytes").is_number_unsigned()) {
      const std::uint64_t largest = number_of(row, "largest_request_bytes");
      text += "  when the device was read, " +
              (largest == 0
                   ? std::string("no large request could succeed")
                   : "a request of " + human_bytes(largest) + " could succeed, none much larger") +
              "\n";
    }
    if (locked_matters) add_lockers(report, "slab_holders", row, " locked by ", paint, text);
  }
}

void add_worst_fragmentation(const ReportDocument& report, const Paint& paint, std::string& text) {
  for (const json& row : report.table("worst_fragmentation")) {
    const std::uint64_t locked = number_of(row, "slab_locked_bytes");
    const json* const device = device_of(report, row);
    const std::uint64_t total = device == nullptr ? 0 : number_of(*device, "total_bytes");
    std::uint64_t at_exit = 0;
    for (const json& now : report.table("fragmentation"))
      if (is_of(now, row)) at_exit = number_of(now, "slab_locked_bytes");
    // What is much the same at the end has been said.
    if (total == 0 || locked < total / 2 / least_share || locked < at_exit + at_exit / 4) continue;
    text += "\n" + paint.yellow("FRAGMENTATION AT ITS WORST") + " (GPU " +
            std::to_string(number_of(row, "device")) + "), after " +
            human_time(number_of(row, "time_ns")) + ": " + human_bytes(locked) +
            " were the free parts of " + human_count(number_of(row, "slab_count")) + " slabs\n";
    add_lockers(report, "worst_slab_holders", row, " was locked by ", paint, text);
  }
}

}  // namespace cuwarden
