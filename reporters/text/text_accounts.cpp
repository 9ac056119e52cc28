#include "reporters/text/text_accounts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

constexpr std::uint64_t bar_width = 24;
constexpr std::size_t most_name_columns = 22;

const std::map<std::string, std::string>& item_names() {
  static const std::map<std::string, std::string> names = {
      {"slab_waste", "locked in slabs"},
      {"rounding_waste", "lost to rounding"},
      {"pool", "free in pool's pages"},
      {"mempool_idle", "idle in pools"},
      {"context", "context"},
      {"modules", "code"},
      {"streams", "streams"},
      {"graphs", "executable graphs"},
      {"libraries", "code of libraries"},
      {"local_memory", "local memory"},
      {"heap", "device heap"},
      {"page_cache", "host's page cache"},
      {"other_processes", "other processes"},
      {"unexplained", "contexts and others"},
  };
  return names;
}

// Returns words for the live allocations of a kind, such as "live device memory". `kind`: as in
// reports.
std::string live_words(const std::string& kind) {
  std::string words = "live " + memory_name(kind, std::nullopt);
  constexpr std::string_view last = " memory";
  if (words.size() > most_name_columns && words.ends_with(last))
    words.resize(words.size() - last.size());
  return words;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t tenths = whole == 0 ? 0 : part * 1000 / whole;
  if (part > 0 && tenths == 0) return "< 0.1 %";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

void add_largest_kernel(const model::Device& device, std::string& text) {
  const model::Figure bytes = device.local_memory_kernel_thread_bytes;
  if (!bytes) return;
  text += "  most local memory needs " +
          (device.local_memory_kernel ? "the kernel " + printable(*device.local_memory_kernel)
                                      : "a kernel") +
          ": " + human_bytes(*bytes) + " for each thread that the device can hold at once\n";
}

// The driver does not tell how much of a program's managed memory lies on a device. `name`: words
// for the row `unexplained`, which has `bytes`.
void add_managed(const model::Report& report, const model::Device& device, const std::string& name,
                 std::uint64_t bytes, std::string& text) {
  if (bytes < device.used_bytes.value_or(0) / least_share) return;
  for (const model::Total& total : report.totals) {
    if (total.kind != "managed" || total.device != device.device) continue;
    const std::uint64_t live = total.live_bytes.value_or(0);
    text += (live == 0 ? "  memory that the driver keeps for managed memory is in \"" + name +
                             "\"; none of it is live"
                       : "  the part of managed memory that lies on the GPU is in \"" + name +
                             "\"; " + human_bytes(live) + " are managed in all") +
            "\n";
  }
}

}  // namespace

std::string account_item_words(const std::string& item) {
  constexpr std::string_view live = "live_";
  if (item.starts_with(live)) return live_words(item.substr(live.size()));
  const auto name = item_names().find(item);
  return name == item_names().end() ? printable(item) : name->second;
}

void add_accounts(const IndexedReport& report, const Style& style, std::string& text) {
  for (const auto& device : report->devices) {
    const std::uint64_t total = device.total_bytes.value_or(0);
    std::vector<std::pair<std::string, std::uint64_t>> rows;
    bool has_context = false;
    std::uint64_t local_memory = 0;
    for (const auto& row : report->accounts) {
      if (row.device != device.device || row.incident || row.bytes.value_or(0) <= 0) continue;
      const std::string item = printable(row.item);
      const auto bytes = static_cast<std::uint64_t>(*row.bytes);
      rows.emplace_back(account_item_words(item), bytes);
      has_context = has_context || item == "context";
      if (item == "local_memory") local_memory = bytes;
    }
    if (rows.empty() || total == 0) continue;
    rows.emplace_back("free", device.free_bytes.value_or(0));
    const auto unexplained = std::ranges::find(rows, item_names().at("unexplained"),
                                               &std::pair<std::string, std::uint64_t>::first);
    // Contexts are in `unexplained` unless they have a row of their own.
    if (unexplained != rows.end() && has_context) unexplained->first = "unexplained";
    const std::uint64_t used = device.used_bytes.value_or(0);
    std::uint64_t told = 0;
    for (const auto& [name, bytes] : rows) told += bytes;
    text += "\n" +
            style.bold("GPU " + std::to_string(device.device) + " of " + human_bytes(total)) +
            style.dim(device.at == "exit" ? " at exit" : " when it was read last") + "\n";
    for (const auto& [name, bytes] : rows) {
      const auto filled =
          static_cast<std::size_t>(std::min(bar_width, (bytes * bar_width + total / 2) / total));
      text += "  " + padded(name, most_name_columns) + " " + padded(human_bytes(bytes), 11, true) +
              "  " + std::string(filled, '#') + style.dim(std::string(bar_width - filled, '.')) +
              " " + padded(percent(bytes, total), 8, true) + "\n";
    }
    if (local_memory > 0 && local_memory >= used / least_share) add_largest_kernel(device, text);
    if (unexplained != rows.end())
      add_managed(*report, device, unexplained->first, unexplained->second, text);
    const std::uint64_t free = device.free_bytes.value_or(0);
    if (told - std::min(told, free) > used) {
      text += style.dim("  the parts add up to " + human_bytes(told - free - used) +
                        " more than is in use. The device was read before the last allocations, or "
                        "the driver cuts its memory in another way than cuwarden assumes") +
              "\n";
    }
  }
}

}  // namespace cuwarden
