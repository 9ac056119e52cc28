#include "reporters/merging/merged_facts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "reporters/model/named_steps.hpp"
#include "reporters/model/sums.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// True if the text is an entry of CUDA_VISIBLE_DEVICES: an ordinal, or a UUID.
bool is_device_entry(std::string_view entry) {
  const auto has_only = [&](std::string_view letters) {
    return !entry.empty() && entry.find_first_not_of(letters) == entry.npos;
  };
  constexpr std::size_t most_digits = 4;
  if (has_only("0123456789")) return entry.size() <= most_digits;
  for (const std::string_view start : {"GPU-", "MIG-GPU-", "MIG-"}) {
    if (!entry.starts_with(start)) continue;
    entry.remove_prefix(start.size());
    return has_only("0123456789abcdefABCDEF-/");
  }
  return false;
}

// Returns the number of devices in a list such as "0,1,2"; 0 if the text is no list, or if one of
// its entries is not understood or occurs twice. CUDA ignores a wrong entry and all behind it.
std::size_t devices_in(std::string_view list) {
  std::set<std::string_view> entries;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    std::string_view entry = list.substr(start, end - start);
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    if (!is_device_entry(entry) || !entries.insert(entry).second) return 0;
    start = end + 1;
  }
  return entries.size();
}

// The devices of a host.
struct DevicesOfHost {
  std::size_t used = 0;  // number of devices that a process used
  // The device with the most processes; of several, the first one.
  const model::MergedDevice* most = nullptr;
};

std::map<model::Text, DevicesOfHost> devices_by_host(const model::MergedReport& report) {
  std::map<model::Text, DevicesOfHost> hosts;
  for (const model::MergedDevice& device : report.devices) {
    DevicesOfHost& host = hosts[device.host];
    ++host.used;
    if (host.most == nullptr || host.most->processes < device.processes) host.most = &device;
  }
  return hosts;
}

}  // namespace

void find_first_refusal(model::MergedReport& report) {
  std::vector<std::pair<std::int64_t, const model::Refusal*>> in_order;
  for (const model::Refusal& refusal : report.refusals)
    if (const auto time = parse_iso_8601(refusal.time)) in_order.emplace_back(*time, &refusal);
  if (in_order.empty()) return;
  std::ranges::stable_sort(in_order, {}, [](const auto& row) { return row.first; });
  model::FirstRefusal first;
  first.process = in_order.front().second->process;
  first.time = in_order.front().second->time;
  for (const auto& [time, refusal] : in_order)
    if (refusal->process != first.process) first.followed_by.push_back(refusal->process);
  if (!first.followed_by.empty())
    first.followed_within_ns =
        static_cast<std::uint64_t>(in_order.back().first - in_order.front().first);
  first.several_clocks =
      report.processes.size() > 1 &&
      std::ranges::any_of(report.processes, [&](const model::MergedProcess& process) {
        return !process.host || process.host != report.processes.front().host;
      });
  report.first_refusal = std::move(first);
}

void find_idle_devices(model::MergedReport& report) {
  std::map<model::Text, std::set<model::Text>> lists_by_host;
  for (const model::MergedProcess& process : report.processes)
    lists_by_host[process.host].insert(process.visible_devices);
  std::map<model::Text, DevicesOfHost> devices = devices_by_host(report);
  for (const auto& [host, lists] : lists_by_host) {
    const std::size_t visible = lists.size() == 1 ? devices_in(lists.begin()->value_or("")) : 0;
    const auto& [used, shared] = devices[host];
    if (shared == nullptr || shared->processes < std::uint64_t{2} || visible <= used) continue;
    report.idle_devices.push_back({.host = host,
                                   .visible = visible,
                                   .used = used,
                                   .idle = visible - used,
                                   .shared_device = shared->id,
                                   .processes = shared->processes});
  }
}

HoldersByDevice holders_by_device(const model::MergedReport& report) {
  HoldersByDevice holders(report.devices.size());
  for (const model::DeviceHolder& holder : report.device_holders)
    holders[holder.device - 1].push_back(&holder);
  return holders;
}

void find_holders(model::MergedReport& report) {
  std::map<std::pair<model::Text, std::uint64_t>, std::vector<const model::MergedProcess*>> by_pid;
  for (const model::MergedProcess& process : report.processes)
    if (process.pid) by_pid[{process.host, *process.pid}].push_back(&process);
  for (model::DeviceHolder& holder : report.device_holders) {
    const model::MergedDevice& device = report.devices[holder.device - 1];
    if (holder.process || !device.full_process || !device.full_time || !holder.pid) continue;
    // The refused process saw the holder on its own host.
    const model::Text& host = report.processes[*device.full_process - 1].host;
    const auto found = by_pid.find({host, *holder.pid});
    if (found == by_pid.end()) continue;
    const model::MergedProcess* last = nullptr;
    for (const model::MergedProcess* const process : found->second)
      // Times in one form are ordered as texts are.
      if (process->start <= *device.full_time && (last == nullptr || last->start < process->start))
        last = process;
    if (last != nullptr) holder.process = last->id;
  }
}

void sum_up(model::MergedLeak& leak, std::span<const model::LeakOfProcess> processes) {
  const auto sum_of = [&](model::Figure model::LeakOfProcess::*figure) {
    model::Figure sum = 0;
    for (const model::LeakOfProcess& row : processes) model::add_to(sum, row.*figure);
    return sum;
  };
  using Row = model::LeakOfProcess;
  leak.count = sum_of(&Row::count);
  leak.bytes = sum_of(&Row::bytes);
  leak.lost_count = sum_of(&Row::lost_count);
  leak.lost_bytes = sum_of(&Row::lost_bytes);
  leak.unknown_count = sum_of(&Row::unknown_count);
  leak.unknown_bytes = sum_of(&Row::unknown_bytes);
  leak.processes = processes.size();
  leak.named_steps.clear();
  for (const Row& row : processes)
    leak.named_steps.insert(leak.named_steps.end(), row.named_steps.begin(), row.named_steps.end());
  model::sum_up_named_steps(leak.named_steps);
  std::vector<std::pair<std::uint64_t, model::Id>> bytes;
  for (const Row& row : processes) bytes.emplace_back(row.bytes.value_or(0), row.process);
  if (bytes.empty() || !leak.bytes) return;
  std::ranges::sort(bytes);
  const std::uint64_t most = bytes.back().first, median = bytes[bytes.size() / 2].first;
  leak.least_bytes = bytes.front().first;
  leak.median_bytes = median;
  leak.most_bytes = most;
  // A process that holds twice as much as most others stands out.
  if (bytes.size() > 2 && most / 2 >= median && median != 0) leak.outlier = bytes.back().second;
}

}  // namespace cuwarden
