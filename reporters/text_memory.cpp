#include "reporters/text_memory.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "reporters/printable.hpp"
#include "reporters/quantities.hpp"
#include "runtime_hooks/core/caching_allocators.hpp"

namespace cuwarden {
namespace {

using nlohmann::json;

constexpr std::uint64_t bar_width = 24;

const std::map<std::string, std::string>& item_names() {
  static const std::map<std::string, std::string> names = {
      {"live_device", "live, linear"},
      {"live_managed", "live, managed"},
      {"live_stream_ordered", "live, stream-ordered"},
      {"live_vmm", "live, virtual memory"},
      {"live_array", "live, arrays"},
      {"live_imported", "imported"},
      {"live_graph", "live, graphs"},
      {"slab_waste", "locked in slabs"},
      {"rounding_waste", "lost to rounding"},
      {"pool", "free in pool's pages"},
      {"mempool_idle", "idle in pools"},
      {"context", "context"},
      {"modules", "code (modules)"},
      {"streams", "streams"},
      {"local_memory", "local memory"},
      {"heap", "device heap"},
      {"other_processes", "other processes"},
      {"unexplained", "contexts and others"},
  };
  return names;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t tenths = whole == 0 ? 0 : part * 1000 / whole;
  if (part > 0 && tenths == 0) return "< 0.1 %";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

// Earlier versions of the report do not say which one it is.
void add_largest_kernel(const json& device, std::string& text) {
  const auto bytes = device.find("local_memory_kernel_thread_bytes");
  if (bytes == device.end() || !bytes->is_number_unsigned()) return;
  const bool named =
      device.contains("local_memory_kernel") && device["local_memory_kernel"].is_string();
  text += "  most local memory needs " +
          (named ? "the kernel " + text_of(device, "local_memory_kernel", "") : "a kernel") + ": " +
          human_bytes(bytes->get<std::uint64_t>()) +
          " for each thread that the device can hold at once\n";
}

}  // namespace

void add_accounts(const ReportDocument& report, const Paint& paint, std::string& text) {
  for (const json& device : report.table("devices")) {
    const std::uint64_t total = number_of(device, "total_bytes");
    std::vector<std::pair<std::string, std::uint64_t>> rows;
    bool has_context = false;
    std::uint64_t local_memory = 0;
    for (const json& row : report.table("accounts")) {
      if (!is_of(row, device) || !row.at("incident").is_null() || number_of(row, "bytes") == 0)
        continue;
      const std::string item = text_of(row, "item", "unknown");
      const auto name = item_names().find(item);
      rows.emplace_back(name == item_names().end() ? item : name->second, number_of(row, "bytes"));
      has_context = has_context || item == "context";
      if (item == "local_memory") local_memory = number_of(row, "bytes");
    }
    // Where contexts have no row of their own they are in what is left.
    if (has_context) {
      for (auto& [name, bytes] : rows)
        if (name == item_names().at("unexplained")) name = "unexplained";
    }
    if (rows.empty() || total == 0) continue;
    rows.emplace_back("free", number_of(device, "free_bytes"));
    const std::uint64_t used = number_of(device, "used_bytes");
    std::uint64_t told = 0;
    for (const auto& [name, bytes] : rows) told += bytes;
    text += "\n" +
            paint.bold("GPU " + std::to_string(number_of(device, "device")) + " of " +
                       human_bytes(total)) +
            paint.dim(device.at("at") == "exit" ? " at exit" : " when it was read last") + "\n";
    for (const auto& [name, bytes] : rows) {
      const auto filled =
          static_cast<std::size_t>(std::min(bar_width, (bytes * bar_width + total / 2) / total));
      text += "  " + padded(name, 22) + " " + padded(human_bytes(bytes), 11, true) + "  " +
              std::string(filled, '#') + paint.dim(std::string(bar_width - filled, '.')) + " " +
              padded(percent(bytes, total), 8, true) + "\n";
    }
    if (local_memory > 0 && local_memory >= used / least_share) add_largest_kernel(device, text);
    const std::uint64_t free = number_of(device, "free_bytes");
    if (told - std::min(told, free) > used) {
      text += paint.dim("  that is " + human_bytes(told - free - used) +
                        " more than is in use: the device was read before the last allocations, or "
                        "the driver cuts its memory in another way than was seen") +
              "\n";
    }
  }
}

void add_arenas(const ReportDocument& report, const Paint& paint, std::string& text) {
  std::map<std::string, std::uint64_t> arenas;
  for (const json& group : report.table("leak_groups")) {
    if (!group.at("released_by").is_null() || group.at("device").is_null()) continue;
    const json* const module = report.module(group.at("module"));
    if (module == nullptr) continue;
    const std::string path = text_of(*module, "path", "");
    if (is_caching_allocator(path))
      arenas[path.substr(path.rfind('/') + 1)] += number_of(group, "bytes");
  }
  for (const auto& [name, bytes] : arenas) {
    text +=
        paint.dim("  " + human_bytes(bytes) + " of that has " + printable(name) +
                  ", which keeps memory to hand out parts of it: how much of it the program uses "
                  "only it can say") +
        "\n";
  }
}

}  // namespace cuwarden
