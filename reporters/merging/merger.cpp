#include "reporters/merging/merger.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "reporters/merging/leaks_of_merged.hpp"
#include "reporters/merging/merged_facts.hpp"
#include "reporters/merging/merged_text.hpp"
#include "reporters/model/named_steps.hpp"
#include "reporters/model/sums.hpp"
#include "reporters/tables/process_facts.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Longest time from a process's start to an incident, in ns: 36 years. A longer one is damaged.
constexpr std::uint64_t longest_ns = std::uint64_t{1} << 60;

// Returns the earlier of two incidents, of which `known` may be null.
const model::Incident* earlier(const model::Incident* known, const model::Incident& other) {
  return known == nullptr || *other.time_ns < *known->time_ns ? &other : known;
}

// Adds up figures of the report's totals of a device, or of all devices if `device` is null. The
// sum is null if one of the figures is.
model::Figure sum_of(const IndexedReport& report, model::Figure model::Total::*figure,
                     model::MaybeId device) {
  model::Figure sum = 0;
  for (const model::Total& total : report->totals)
    if (total.device && (!device || total.device == device)) model::add_to(sum, total.*figure);
  return sum;
}

model::MergedProcess row_of(const IndexedReport& report, const std::string& module) {
  const model::Process& process = report->process;
  model::MergedProcess row;
  row.rank = report->job.rank;
  row.host = process.host;
  row.pid = process.pid;
  row.program = process.program;
  row.start = process.start;
  row.end_ns = process.end_ns;
  row.end_reason = process.end_reason;
  row.exit_status = process.exit_status;
  row.signal = process.signal;
  row.job_id = report->job.job_id;
  row.visible_devices = report->job.visible_devices;
  for (const model::Device& device : report->devices)
    if (device.uuid) row.devices.push_back(*device.uuid);
  row.peak_bytes = sum_of(report, &model::Total::peak_bytes, std::nullopt);
  const LeakCheck check = check_leaks(report, module);
  row.leak_count = check.count;
  row.leak_bytes = check.bytes;
  row.doubt = check.doubt ? check.doubt : unlisted_leaks(report, module, check);
  row.pointer_search = report->pointer_search.has_value();
  row.incidents = report->incidents.size();
  for (const model::Incident& incident : report->incidents)
    if (std::ranges::count(row.verdicts, incident.verdict) == 0)
      row.verdicts.push_back(incident.verdict);
  return row;
}

// Returns the figure as one that is not negative: 0 for less.
model::Figure figure_of(model::SignedFigure figure) {
  if (!figure) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(*figure, 0));
}

}  // namespace

model::Id Merger::id_of(model::MergedDevice device, model::Id process) {
  const auto next = static_cast<model::Id>(devices_.size() + 1);
  const bool is_nameless = text_or(device.uuid, "").empty() && !device.host;
  const auto [known, is_new] =
      device_ids_.try_emplace({device_name(device), is_nameless ? process : 0}, next);
  if (is_new) devices_.push_back({std::move(device), {}});
  return known->second;
}

Merger::IdsByOrdinal Merger::add_devices(const IndexedReport& report) {
  IdsByOrdinal ids;
  for (const model::Device& device : report->devices) {
    model::MergedDevice row;
    row.uuid = device.uuid;
    if (!device.uuid) row.device = device.device;
    row.name = device.name;
    row.host = report->process.host;
    const model::Id id = id_of(std::move(row), processes_.back().id);
    ids[device.device] = id;
    uses_.push_back({.process = processes_.back().id,
                     .device = id,
                     .ordinal = device.device,
                     .live_bytes = sum_of(report, &model::Total::live_bytes, device.device),
                     .peak_bytes = sum_of(report, &model::Total::peak_bytes, device.device),
                     .refused = static_cast<std::uint64_t>(std::ranges::count_if(
                         report->incidents,
                         [&](const auto& incident) { return incident.device == device.device; }))});
  }
  return ids;
}

std::vector<model::DeviceHolder> Merger::holders_at(const IndexedReport& report,
                                                    const model::Incident& incident) const {
  model::DeviceHolder own;
  own.process = processes_.back().id;
  own.pid = report->process.pid;
  own.program = report->process.program;
  bool is_accounted = false;
  for (const model::AccountItem& item : report->accounts) {
    if (item.incident != incident.id || item.device != incident.device) continue;
    // Without an account of the device, the bytes stay unknown.
    if (!is_accounted) own.bytes = 0;
    is_accounted = true;
    if (item.item.starts_with("live_")) model::add_to(own.bytes, figure_of(item.bytes));
  }
  std::vector<model::DeviceHolder> holders{own};
  for (const model::DeviceProcess& other : report->device_processes)
    if (other.incident == incident.id && other.device == incident.device && other.pid)
      holders.push_back({.pid = other.pid, .program = other.program, .bytes = other.used_bytes});
  std::ranges::stable_sort(holders.begin() + 1, holders.end(), std::greater(),
                           &model::DeviceHolder::bytes);
  return holders;
}

template <class Holders>
void Merger::keep_if_first(Full& full, std::int64_t realtime_ns, model::Id process,
                           const Holders& holders) {
  if (full.process != 0 && full.realtime_ns <= realtime_ns) return;
  full = {realtime_ns, process, holders()};
}

void Merger::add_refusals(const IndexedReport& report, const IdsByOrdinal& ids) {
  const auto start = parse_iso_8601(report->process.start);
  if (!start) return;
  const model::Incident* first = nullptr;
  std::map<model::Id, const model::Incident*> first_by_device;
  for (const model::Incident& incident : report->incidents) {
    if (incident.outcome != "failed" || !incident.time_ns || *incident.time_ns > longest_ns)
      continue;
    first = earlier(first, incident);
    const auto id = incident.device ? ids.find(*incident.device) : ids.end();
    if (id != ids.end())
      first_by_device[id->second] = earlier(first_by_device[id->second], incident);
  }
  if (first == nullptr) return;
  const auto time_of = [&](const model::Incident& incident) {
    return *start + static_cast<std::int64_t>(*incident.time_ns);
  };
  const model::Id process = processes_.back().id;
  model::Refusal row;
  row.process = process;
  row.time = iso_8601(time_of(*first));
  row.api = first->api;
  row.bytes = first->bytes;
  if (first->device && ids.contains(*first->device)) row.device = ids.at(*first->device);
  row.verdict = first->verdict;
  row.where = model::text_or_null(calling_location(report, first->stack).location);
  refusals_.push_back(std::move(row));
  for (const auto& failed : first_by_device)
    keep_if_first(devices_[failed.first - 1].full, time_of(*failed.second), process,
                  [&] { return holders_at(report, *failed.second); });
}

Merger::Leak& Merger::leak_of(const IndexedReport& report, const LeakRow& row) {
  const auto [known, is_new] = leaks_.try_emplace(std::string(row.fingerprint));
  model::MergedLeak& leak = known->second.row;
  if (is_new) {
    leak.fingerprint = known->first;
    leak.kind = row.kind;
    leak.api = model::text_or_null(row.api);
    leak.stack = stacks_.add(report, row.stack);
    leak.where = model::text_or_null(calling_location(report, row.stack).location);
  }
  return known->second;
}

void Merger::keep_common(const std::vector<model::Setting>& settings) {
  if (!settings_) {
    settings_ = settings;
    return;
  }
  const auto key_of = [](const model::Setting& setting) {
    return std::tie(setting.name, setting.value, setting.source);
  };
  std::set<decltype(key_of(settings.front()))> present;
  for (const model::Setting& setting : settings) present.insert(key_of(setting));
  std::erase_if(*settings_,
                [&](const model::Setting& known) { return !present.contains(key_of(known)); });
}

void Merger::add(const std::string& name, const IndexedReport& report, Told told) {
  model::MergedProcess process = row_of(report, module_);
  process.id = static_cast<model::Id>(processes_.size() + 1);
  process.report = name;
  known_.add(identity_of(process), process.id);
  processes_.push_back(std::move(process));
  add_refusals(report, add_devices(report));
  std::vector<Leak*> of_process;
  RowProgress done(report->leak_groups.size() + report->framework_sites.size(), 1, told);
  each_leak(report, "", [&](const LeakRow& row) {
    done();
    Leak& leak = leak_of(report, row);
    const model::Id id = processes_.back().id;
    if (leak.processes.empty() || leak.processes.back().process != id) {
      leak.processes.push_back({.process = id,
                                .count = 0,
                                .bytes = 0,
                                .lost_count = 0,
                                .lost_bytes = 0,
                                .unknown_count = 0,
                                .unknown_bytes = 0});
      of_process.push_back(&leak);
    }
    model::LeakOfProcess& own = leak.processes.back();
    model::add_to(own.count, row.count);
    model::add_to(own.bytes, row.bytes);
    model::add_to(own.lost_count, row.lost_count);
    model::add_to(own.lost_bytes, row.lost_bytes);
    model::add_to(own.unknown_count, row.unknown_count);
    model::add_to(own.unknown_bytes, row.unknown_bytes);
    own.named_steps.insert(own.named_steps.end(), row.named_steps.begin(), row.named_steps.end());
  });
  // Summed up once, since a leak may have many rows in the report.
  for (Leak* const leak : of_process) model::sum_up_named_steps(leak->processes.back().named_steps);
  add_suppressed_of(report, suppressed_);
  if (!report->settings.empty()) keep_common(report->settings);
}

std::size_t Merger::add(const model::MergedReport& merged,
                        FunctionRef<bool(const model::MergedProcess&)> counts) {
  const IndexedReport leaks(leaks_of_merged(merged));
  // By the old ids less 1: the new ids; null for processes that were known or do not count.
  std::vector<model::MaybeId> processes;
  std::vector<model::Id> devices;
  // By the old ids less 1: the new ids, also those of processes that were known.
  std::vector<model::Id> all_processes;
  std::size_t known_processes = 0;
  for (const model::MergedProcess& row : merged.processes) {
    const auto known = known_.find(identity_of(row));
    const bool is_counted = counts(row);
    processes.emplace_back();
    all_processes.push_back(static_cast<model::Id>(known.value_or(processes_.size() + 1)));
    if (known && is_counted) ++known_processes;
    if (known || !is_counted) continue;
    processes_.push_back(row);
    processes.back() = processes_.back().id = all_processes.back();
    known_.add(identity_of(row), processes_.back().id);
  }
  // For each device, by its old id less 1: the new id of a process that used it; 0: none did. A
  // process that is added is preferred. Devices that are used, but by no process that is added, are
  // left out.
  std::vector<model::Id> users(merged.devices.size());
  std::vector<bool> is_left_out(merged.devices.size());
  for (const model::DeviceUse& use : merged.device_uses) {
    const bool is_added = processes[use.process - 1].has_value();
    model::Id& user = users[use.device - 1];
    if (user != 0 && !(is_added && is_left_out[use.device - 1])) continue;
    user = all_processes[use.process - 1];
    is_left_out[use.device - 1] = !is_added;
  }
  const auto holders_of = holders_by_device(merged);
  for (const model::MergedDevice& row : merged.devices) {
    devices.push_back(is_left_out[row.id - 1] ? 0 : id_of(row, users[row.id - 1]));
    if (devices.back() == 0) continue;
    const auto time = parse_iso_8601(row.full_time.value_or(""));
    const model::MaybeId process =
        row.full_process ? processes[*row.full_process - 1] : std::nullopt;
    if (!time || !process) continue;
    keep_if_first(devices_[devices.back() - 1].full, *time, *process, [&] {
      std::vector<model::DeviceHolder> holders;
      for (const model::DeviceHolder* const holder : holders_of[row.id - 1]) {
        holders.push_back(*holder);
        // The processes are found again, since some may have come with other files.
        holders.back().process = holder->process == row.full_process ? process : std::nullopt;
      }
      return holders;
    });
  }
  // Calls visit(row) for each row of a process that was not known, after the row has got the
  // process's new id.
  const auto each_new = [&](const auto& rows, const auto& visit) {
    for (auto row : rows) {
      if (!processes[row.process - 1]) continue;
      row.process = *processes[row.process - 1];
      visit(std::move(row));
    }
  };
  each_new(merged.device_uses, [&](model::DeviceUse row) {
    row.device = devices[row.device - 1];
    uses_.push_back(row);
  });
  each_new(merged.refusals, [&](model::Refusal row) {
    if (row.device) row.device = devices[*row.device - 1];
    if (row.device == 0) row.device = std::nullopt;
    refusals_.push_back(std::move(row));
  });
  each_new(merged.leaks_of_processes, [&](const model::LeakOfProcess& row) {
    const model::MergedLeak& leak = merged.leaks[row.leak - 1];
    leak_of(leaks,
            {leak.fingerprint, leak.kind, leak.api ? std::string_view(*leak.api) : "", leak.stack})
        .processes.push_back(row);
  });
  suppressed_.insert(merged.suppressed_fingerprints.begin(), merged.suppressed_fingerprints.end());
  const std::vector<std::string> doubts = doubts_about(merged);
  reasons_.insert(reasons_.end(), doubts.begin(), doubts.end());
  if (!merged.settings.empty()) keep_common(merged.settings);
  return known_processes;
}

void Merger::give_devices(model::MergedReport& report) {
  std::vector<model::Id> new_ids(devices_.size());
  for (const auto& [key, old_id] : device_ids_) {
    Device& device = devices_[old_id - 1];
    const auto id = static_cast<model::Id>(report.devices.size() + 1);
    new_ids[old_id - 1] = device.row.id = id;
    device.row.processes = device.row.live_bytes = device.row.peak_bytes = device.row.refused = 0;
    device.row.full_time = std::nullopt;
    device.row.full_process = std::nullopt;
    if (device.full.process != 0) {
      device.row.full_time = iso_8601(device.full.realtime_ns);
      device.row.full_process = device.full.process;
    }
    report.devices.push_back(std::move(device.row));
    for (model::DeviceHolder& holder : device.full.holders) {
      holder.device = id;
      report.device_holders.push_back(std::move(holder));
    }
  }
  for (model::DeviceUse& use : uses_) {
    use.device = new_ids[use.device - 1];
    model::MergedDevice& device = report.devices[use.device - 1];
    model::add_to(device.processes, 1);
    model::add_to(device.live_bytes, use.live_bytes);
    model::add_to(device.peak_bytes, use.peak_bytes);
    model::add_to(device.refused, use.refused);
  }
  report.device_uses = std::move(uses_);
  for (model::Refusal& refusal : refusals_)
    if (refusal.device) refusal.device = new_ids[*refusal.device - 1];
  report.refusals = std::move(refusals_);
}

void Merger::give_leaks(model::MergedReport& report) {
  std::vector<Leak*> sorted;
  for (auto& [fingerprint, leak] : leaks_) {
    sum_up(leak.row, leak.processes);
    sorted.push_back(&leak);
  }
  std::ranges::stable_sort(sorted, std::greater(),
                           [](const Leak* leak) { return leak->row.bytes; });
  for (Leak* const leak : sorted) {
    leak->row.id = static_cast<model::Id>(report.leaks.size() + 1);
    for (model::LeakOfProcess& row : leak->processes) {
      row.leak = leak->row.id;
      report.leaks_of_processes.push_back(row);
    }
    report.leaks.push_back(std::move(leak->row));
    leak->processes = {};
  }
}

model::MergedReport Merger::finish() {
  model::MergedReport report;
  report.tool = {"cuwarden", CUWARDEN_VERSION, reasons_.empty(), std::move(reasons_)};
  report.processes = std::move(processes_);
  give_devices(report);
  give_leaks(report);
  find_first_refusal(report);
  find_idle_devices(report);
  find_holders(report);
  report.suppressed_fingerprints.assign(suppressed_.begin(), suppressed_.end());
  if (settings_) report.settings = std::move(*settings_);
  stacks_.give(report);
  return report;
}

}  // namespace cuwarden
