#include "reporters/comparison/job_summary.hpp"

#include <algorithm>
#include <functional>

#include "reporters/text/text_stacks.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Most processes that are named as holders of a device.
constexpr std::size_t most_holders = 8;

std::string device_name(const model::Device& device, const std::string& host) {
  const std::string uuid = text_or(device.uuid, "");
  return uuid.empty() ? "GPU " + std::to_string(device.device) + " of " + host : uuid;
}

// Returns the number of devices in a list such as "0,1,2"; 0 if the text is no list.
std::size_t devices_in(const std::string& list) {
  if (list.empty() || list.starts_with('-')) return 0;
  return static_cast<std::size_t>(std::ranges::count(list, ',')) + 1;
}

// Returns the earliest incident of the report that the program saw fail; null if there is none.
const model::Incident* first_failure(const IndexedReport& report) {
  const model::Incident* first = nullptr;
  for (const model::Incident& incident : report->incidents) {
    if (incident.outcome != "failed" || !incident.time_ns) continue;
    if (first == nullptr || *incident.time_ns < *first->time_ns) first = &incident;
  }
  return first;
}

}  // namespace

std::string JobSummary::name_of(std::size_t member) const {
  const Member& found = members_[member];
  return hosts_.size() > 1 ? found.name + " on " + found.host : found.name;
}

std::string JobSummary::name_of(const std::string& host, std::uint64_t pid) const {
  const auto found = std::ranges::find_if(
      members_, [&](const Member& member) { return member.host == host && member.pid == pid; });
  if (found == members_.end()) return "pid " + std::to_string(pid);
  return name_of(static_cast<std::size_t>(found - members_.begin()));
}

void JobSummary::add_refusal(const IndexedReport& report) {
  const model::Incident* const incident = first_failure(report);
  const auto start = parse_iso_8601(report->process.start);
  if (incident == nullptr || !start) return;
  Refusal refusal;
  refusal.realtime_ns = *start + static_cast<std::int64_t>(*incident->time_ns);
  refusal.member = members_.size() - 1;
  refusal.line = text_or(incident->api, "a request") +
                 (incident->bytes ? " of " + human_bytes(*incident->bytes) : "") +
                 " failed: " + printable(incident->verdict);
  if (incident->stack)
    if (const std::string where = calling_location(report, incident->stack).location;
        !where.empty())
      refusal.line += ", " + where;
  for (const model::Device& device : report->devices)
    if (device.device == incident->device)
      refusal.device = device_name(device, members_.back().host);
  for (const model::DeviceProcess& other : report->device_processes)
    if (other.incident == incident->id && other.device == incident->device && other.pid)
      refusal.holders.emplace_back(*other.pid, other.used_bytes.value_or(0));
  for (const model::AccountItem& item : report->accounts)
    if (item.incident == incident->id && item.device == incident->device &&
        item.item.starts_with("live_"))
      refusal.own_bytes +=
          static_cast<std::uint64_t>(std::max<std::int64_t>(item.bytes.value_or(0), 0));
  refusals_.push_back(std::move(refusal));
}

void JobSummary::add(const IndexedReport& report) {
  const model::Process& process = report->process;
  Member member;
  member.host = text_or(process.host, "an unknown host");
  member.pid = process.pid.value_or(0);
  member.name = report->job.rank
                    ? "rank " + std::to_string(*report->job.rank)
                    : std::string(file_name(text_or(process.program, "unknown program"))) +
                          " (pid " + std::to_string(member.pid) + ")";
  hosts_.insert(member.host);
  members_.push_back(member);
  for (const model::Device& row : report->devices) {
    Device& device = devices_[device_name(row, member.host)];
    device.host = member.host;
    ++device.processes;
  }
  visible_[member.host].insert(text_or(report->job.visible_devices, ""));
  add_refusal(report);
  each_leak(report, "", [&](const LeakRow& row) { add_leak(report, row); });
}

void JobSummary::add_leak(const IndexedReport& report, const LeakRow& row) {
  Leak& leak = leaks_[printable(std::string(row.fingerprint))];
  const std::size_t member = members_.size() - 1;
  if (leak.bytes.empty()) {
    const std::string api = printable(std::string(row.api));
    leak.heading =
        memory_name(std::string(row.kind), std::nullopt) + (api.empty() ? "" : " · " + api);
    add_stack(report, row.stack, most_compared_frames, style_, leak.stack);
  }
  if (leak.bytes.empty() || leak.bytes.back().second != member) leak.bytes.emplace_back(0, member);
  leak.bytes.back().first += row.bytes;
}

std::string JobSummary::first_refusal() const {
  if (refusals_.empty()) return "";
  const Refusal& first = *std::ranges::min_element(refusals_, {}, &Refusal::realtime_ns);
  std::string text = style_.red("FIRST OUT OF MEMORY") + ": " + style_.bold(name_of(first.member)) +
                     " at " + time_of_day(first.realtime_ns) + ", " + first.line + "\n";
  if (const std::size_t followed = refusals_.size() - 1; followed != 0) {
    std::int64_t last_ns = 0;
    for (const Refusal& refusal : refusals_) last_ns = std::max(last_ns, refusal.realtime_ns);
    text += "  " + human_count(followed) + (followed == 1 ? " other process" : " other processes") +
            " followed within " +
            human_time(static_cast<std::uint64_t>(last_ns - first.realtime_ns)) +
            (hosts_.size() > 1 ? ", if the clocks of the hosts agree" : "") + "\n";
  }
  auto holders = first.holders;
  std::ranges::stable_sort(holders, std::greater(), [](const auto& row) { return row.second; });
  if (holders.empty()) return text;
  const std::string& host = members_[first.member].host;
  text += "  " + first.device + " was held by: " + name_of(first.member) + " itself " +
          human_bytes(first.own_bytes);
  for (std::size_t i = 0; i < holders.size() && i < most_holders; ++i)
    text += ", " + name_of(host, holders[i].first) + " " +
            (holders[i].second == 0 ? "unknown" : human_bytes(holders[i].second));
  if (holders.size() > most_holders)
    text += ", " + human_count(holders.size() - most_holders) + " more";
  return text + "\n";
}

std::string JobSummary::idle_devices() const {
  std::string text;
  for (const auto& [host, lists] : visible_) {
    const std::size_t visible = lists.size() == 1 ? devices_in(*lists.begin()) : 0;
    std::size_t used = 0, most = 0;
    std::string shared;
    for (const auto& [name, device] : devices_) {
      if (device.host != host) continue;
      ++used;
      if (device.processes <= most) continue;
      most = device.processes;
      shared = name;
    }
    if (most < 2 || visible <= used) continue;
    const std::size_t idle = visible - used;
    text += style_.yellow(human_count(most) + " processes use " + shared) + ", " +
            human_count(idle) + (idle == 1 ? " visible GPU of " : " visible GPUs of ") + host +
            (idle == 1 ? " is" : " are") +
            " idle: check how ranks are bound to GPUs, and that each chooses by its local rank\n";
  }
  return text;
}

std::string JobSummary::spread(const Leak& leak) const {
  auto bytes = leak.bytes;
  std::ranges::sort(bytes);
  const std::uint64_t least = bytes.front().first, most = bytes.back().first,
                      median = bytes[bytes.size() / 2].first;
  if (least == most) return human_bytes(most) + " each";
  std::string text = "least " + human_bytes(least) + ", median " + human_bytes(median) + ", most " +
                     human_bytes(most);
  // A process that holds twice as much as most others stands out.
  if (bytes.size() > 2 && most / 2 >= median && median != 0)
    text += "; " + style_.red(name_of(bytes.back().second) + " holds " +
                              human_count(most / median) + "× the median");
  return text;
}

std::string JobSummary::common_leaks(std::size_t top) const {
  std::vector<std::pair<std::uint64_t, const Leak*>> common;
  for (const auto& [fingerprint, leak] : leaks_) {
    if (leak.bytes.size() < 2) continue;
    std::uint64_t sum = 0;
    for (const auto& [bytes, member] : leak.bytes) sum += bytes;
    common.emplace_back(sum, &leak);
  }
  if (common.empty()) return "";
  std::ranges::stable_sort(common, std::greater(), [](const auto& row) { return row.first; });
  std::string text = style_.bold("NOT FREED IN SEVERAL PROCESSES") + "\n";
  const std::size_t shown = top == 0 ? common.size() : std::min(top, common.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [sum, leak] = common[i];
    text += padded(std::to_string(i + 1) + ".", 3, true) + " " + style_.bold(human_bytes(sum)) +
            " in " + human_count(leak->bytes.size()) + " processes (" + spread(*leak) + ") · " +
            leak->heading + "\n" + leak->stack;
  }
  if (shown < common.size())
    text +=
        style_.dim("  … " + std::to_string(common.size() - shown) + " more; --top 0 shows all") +
        "\n";
  return text;
}

}  // namespace cuwarden
