#include "reporters/merging/merged_text.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "reporters/comparison/leaks_by_fingerprint.hpp"
#include "reporters/merging/leaks_of_merged.hpp"
#include "reporters/merging/merged_facts.hpp"
#include "reporters/merging/merged_steps.hpp"
#include "reporters/text/elements/process_ending.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Most processes that are named as holders of a device.
constexpr std::size_t most_holders = 8;

std::string host_name(const model::Text& host) { return text_or(host, "an unknown host"); }

std::string program_name(const model::MergedProcess& process) {
  return std::string(file_name(text_or(process.program, "unknown program")));
}

// Returns "1 NOUN" or "3 NOUNs"; a noun that ends with s gets "es".
std::string number_of(std::uint64_t count, const std::string& noun) {
  return human_count(count) + " " + noun + (count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

// Returns the bytes as text, or "unknown".
std::string bytes_or_unknown(model::Figure bytes) {
  return bytes ? human_bytes(*bytes) : std::string("unknown");
}

// Returns "rank 3" or "ranks 0, 1, 3 to 6" for one or more ranks, lowest first. Of a long list, the
// end is a number: "ranks 0, 2, 4, 6, 8, 10, 12, 14, 8 more".
std::string ranks_text(const std::set<std::uint64_t>& ranks) {
  constexpr std::size_t most_named = 8;
  const std::vector<std::uint64_t> all(ranks.begin(), ranks.end());
  std::string text;
  std::size_t at = 0;
  for (std::size_t named = 0; at < all.size() && named < most_named; ++named) {
    std::size_t last = at;
    while (last + 1 < all.size() && all[last + 1] == all[last] + 1) ++last;
    // Two neighbours are named one by one.
    if (last == at + 1) last = at;
    text += (text.empty() ? "" : ", ") + std::to_string(all[at]);
    if (last != at) text += " to " + std::to_string(all[last]);
    at = last + 1;
  }
  if (at < all.size()) text += ", " + human_count(all.size() - at) + " more";
  return (all.size() == 1 ? "rank " : "ranks ") + text;
}

// Makes the sections of the text.
class MergedText {
 public:
  MergedText(const model::MergedReport& report, const Style& style)
      : report_(report), style_(style), holders_by_device_(holders_by_device(report)) {
    for (const model::MergedProcess& process : report.processes)
      several_hosts_ |= process.host != report.processes.front().host;
    devices_of_.resize(report.processes.size());
    for (const model::DeviceUse& use : report.device_uses)
      devices_of_[use.process - 1].push_back(use.device);
    has_refusal_.resize(report.processes.size());
    for (const model::Refusal& refusal : report.refusals) has_refusal_[refusal.process - 1] = true;
  }

  std::string first_refusal() const;
  std::string idle_devices() const;
  std::string processes() const;
  // Returns a line that names the report to read first: that of the first process that ran out of
  // memory, or else of the one that leaked most. Empty: no process did either.
  std::string to_do() const;
  std::string devices() const;
  std::string common_leaks(std::size_t top) const;
  std::string named_steps(std::size_t top) const;

 private:
  const model::MergedProcess& process(model::Id id) const { return report_.processes[id - 1]; }
  const model::MergedDevice& device(model::Id id) const { return report_.devices[id - 1]; }
  // Returns "rank 3" or, without a rank, "app (pid 4711)"; with the host if the job ran on several.
  std::string name_of(model::Id process) const;
  std::string leaks_of(const model::MergedProcess&) const;
  std::string peak_of(const model::MergedProcess&) const;
  std::string incidents_of(const model::MergedProcess&) const;
  // Returns words for the processes that were refused later: "ranks 0, 1, 3 to 6 and 2 other
  // processes". Processes without a rank, or with that of a process named before, are counted.
  // Empty: there are none.
  std::string followers_of(const model::FirstRefusal&) const;
  // Returns ": rank 1 itself 2.0 MiB, rank 0 3.0 MiB", the processes that held the device when it
  // was full; empty if only the refused process is known.
  std::string holders_of(const model::MergedDevice&) const;
  // Returns the names of the processes in which the step left memory: "rank 3, rank 5".
  std::string processes_of(const LeakingStep&) const;
  // Returns the line of code of the step's largest leak, and the number of its other leaks: "at
  // cache.cpp:41 in load, and in 2 more leaks".
  std::string leaks_of(const LeakingStep&) const;
  // Returns the bytes of a leak: "4.0 MiB each", or the least, the median and the most.
  std::string spread(const model::MergedLeak&) const;
  // Returns the line that ends a list from which rows are left out; empty if none is.
  std::string more_line(std::size_t left_out) const;

  const model::MergedReport& report_;
  const Style& style_;
  HoldersByDevice holders_by_device_;
  bool several_hosts_ = false;
  std::vector<std::vector<model::Id>> devices_of_;  // devices of each process, by its id less 1
  std::vector<bool> has_refusal_;  // true if a request of the process failed, by its id less 1
};

std::string MergedText::name_of(model::Id id) const {
  const model::MergedProcess& found = process(id);
  const std::string name =
      found.rank ? "rank " + std::to_string(*found.rank)
                 : program_name(found) + " (pid " + std::to_string(found.pid.value_or(0)) + ")";
  return several_hosts_ ? name + " on " + host_name(found.host) : name;
}

std::string MergedText::holders_of(const model::MergedDevice& full) const {
  const std::vector<const model::DeviceHolder*>& holders = holders_by_device_[full.id - 1];
  if (holders.size() < 2) return "";
  std::string text;
  const std::size_t shown = std::min(holders.size(), most_holders + 1);
  for (const model::DeviceHolder* const holder : std::span(holders).first(shown)) {
    text += text.empty() ? ": " : ", ";
    text += holder->process ? name_of(*holder->process)
                            : "pid " + std::to_string(holder->pid.value_or(0));
    const bool is_refused = holder->process && holder->process == full.full_process;
    // Another process that was found to hold the device holds more than nothing.
    const bool is_unknown = holder->bytes == 0 && !is_refused;
    text += (is_refused ? " itself " : " ") +
            bytes_or_unknown(is_unknown ? std::nullopt : holder->bytes);
  }
  if (shown < holders.size()) text += ", " + human_count(holders.size() - shown) + " more";
  return text;
}

std::string MergedText::followers_of(const model::FirstRefusal& first) const {
  std::set<std::uint64_t> ranks;
  std::size_t others = 0;
  for (const model::Id id : first.followed_by) {
    const model::Figure rank = process(id).rank;
    if (!rank || rank == process(first.process).rank || !ranks.insert(*rank).second) ++others;
  }
  std::string text = ranks.empty() ? "" : ranks_text(ranks);
  if (others != 0) text += (text.empty() ? "" : " and ") + number_of(others, "other process");
  return text;
}

std::string MergedText::first_refusal() const {
  if (!report_.first_refusal) return "";
  const model::FirstRefusal& first = *report_.first_refusal;
  std::string text = style_.red("FIRST OUT OF MEMORY") + ": " +
                     style_.bold(name_of(first.process)) + " at " +
                     time_of_day(parse_iso_8601(first.time).value_or(0));
  const auto refusal = std::ranges::find(report_.refusals, first.process, &model::Refusal::process);
  const bool is_known = refusal != report_.refusals.end();
  if (is_known) {
    text += ", " + text_or(refusal->api, "a request") +
            (refusal->bytes ? " of " + human_bytes(*refusal->bytes) : "") +
            " failed: " + printable(refusal->verdict);
    if (refusal->where) text += ", " + printable(*refusal->where);
  }
  text += "\n";
  if (const std::string followers = followers_of(first); !followers.empty())
    text += "  " + followers + " followed within " +
            human_time(first.followed_within_ns.value_or(0)) +
            (first.several_clocks ? ", if the clocks of the hosts agree" : "") + "\n";
  if (!is_known || !refusal->device) return text;
  const model::MergedDevice& full = device(*refusal->device);
  if (const std::string holders = holders_of(full); !holders.empty())
    text += "  " + device_name(full) + " was held by" + holders + "\n";
  return text;
}

std::string MergedText::idle_devices() const {
  std::string text;
  for (const model::IdleDevices& row : report_.idle_devices) {
    const std::uint64_t idle = row.idle.value_or(0);
    text += style_.yellow(number_of(row.processes.value_or(0), "process") + " use " +
                          device_name(device(row.shared_device))) +
            ", " + number_of(idle, "visible GPU") + " of " + host_name(row.host) +
            (idle == 1 ? " is" : " are") +
            " idle: check how ranks are bound to GPUs, and that each chooses by its local rank\n";
  }
  return text;
}

std::string MergedText::leaks_of(const model::MergedProcess& process) const {
  const std::uint64_t count = process.leak_count.value_or(0);
  if (count == 0)
    return process.doubt ? style_.yellow("no leaks are known, but records are missing")
                         : style_.green("no leaks");
  const std::string amount =
      human_bytes(process.leak_bytes.value_or(0)) + " in " + allocations(count);
  if (process.end_reason == "running") return amount + " still allocated";
  return amount + style_.red(is_end_at_work(process.end_reason) ? " still allocated" : " leaked");
}

std::string MergedText::peak_of(const model::MergedProcess& process) const {
  const std::vector<model::Id>& used = devices_of_[process.id - 1];
  if (used.empty()) return "";
  return "; peak " + bytes_or_unknown(process.peak_bytes) + " on " +
         (used.size() == 1 ? device_name(device(used.front())) : number_of(used.size(), "device"));
}

std::string MergedText::incidents_of(const model::MergedProcess& process) const {
  const std::uint64_t incidents = process.incidents.value_or(0);
  if (incidents == 0) return "";
  std::string text = "; " + human_count(incidents) +
                     (incidents == 1 ? " request was refused" : " requests were refused");
  // The merged report has no refusal of a process whose requests were all served after all. It has
  // none either if the process's start is unknown.
  if (!has_refusal_[process.id - 1] && parse_iso_8601(process.start)) text += " but did not fail";
  for (const std::string& verdict : process.verdicts)
    text += (&verdict == &process.verdicts.front() ? ": " : ", ") + printable(verdict);
  return text;
}

std::string MergedText::processes() const {
  std::string text;
  for (const model::MergedProcess& process : report_.processes) {
    text += printable(process.report) + ": " + program_name(process) + " (pid " +
            std::to_string(process.pid.value_or(0)) + " on " + host_name(process.host);
    if (process.rank) text += ", rank " + std::to_string(*process.rank);
    text += ") " + process_ending(process.end_reason, process.exit_status, process.signal) + ": " +
            leaks_of(process) + peak_of(process) + incidents_of(process) + "\n";
  }
  return text;
}

std::string MergedText::to_do() const {
  const std::string start = style_.bold("To do") + ": begin with `cuwarden report` of ";
  if (report_.first_refusal)
    return start + printable(process(report_.first_refusal->process).report) +
           ", which names the cause, the holders and the remedy\n";
  const model::MergedProcess* most = nullptr;
  for (const model::MergedProcess& process : report_.processes) {
    if (process.leak_count.value_or(0) == 0 || process.end_reason == "running") continue;
    if (most == nullptr || process.leak_bytes.value_or(0) > most->leak_bytes.value_or(0))
      most = &process;
  }
  if (most == nullptr) return "";
  return start + printable(most->report) + ", where most memory was not freed\n";
}

std::string MergedText::devices() const {
  std::string text;
  for (const model::MergedDevice& row : report_.devices) {
    text += device_name(row) + " (" + text_or(row.name, "unknown") + " on " + host_name(row.host) +
            "): " + number_of(row.processes.value_or(0), "process") + ", " +
            bytes_or_unknown(row.live_bytes) + " live at the end, peaks of " +
            bytes_or_unknown(row.peak_bytes) + " in all";
    if (const std::uint64_t refused = row.refused.value_or(0); refused != 0)
      text += ", " + number_of(refused, "refused request");
    text += "\n";
    // The holders of the device that was full first stand at the beginning of the text.
    const bool is_told = report_.first_refusal &&
                         row.full_process == report_.first_refusal->process &&
                         row.full_time == report_.first_refusal->time;
    if (row.processes.value_or(0) < 2 || is_told) continue;
    if (const std::string holders = holders_of(row); !holders.empty())
      text += "  full at " + time_of_day(parse_iso_8601(row.full_time.value_or("")).value_or(0)) +
              ", held by" + holders + "\n";
  }
  return text;
}

std::string MergedText::spread(const model::MergedLeak& leak) const {
  const std::uint64_t least = leak.least_bytes.value_or(0), most = leak.most_bytes.value_or(0),
                      median = leak.median_bytes.value_or(0);
  if (!leak.bytes) return "of some it is unknown how much";
  if (least == most) return human_bytes(most) + " each";
  std::string text = "least " + human_bytes(least) + ", median " + human_bytes(median) + ", most " +
                     human_bytes(most);
  if (leak.outlier && median != 0)
    text += "; " + style_.red(name_of(*leak.outlier) + " holds " + human_count(most / median) +
                              "× the median");
  return text;
}

std::string MergedText::more_line(std::size_t left_out) const {
  if (left_out == 0) return "";
  return style_.dim("  … " + std::to_string(left_out) + " more; --top 0 shows all") + "\n";
}

std::string MergedText::common_leaks(std::size_t top) const {
  std::vector<const model::MergedLeak*> common;
  for (const model::MergedLeak& leak : report_.leaks)
    if (leak.processes.value_or(0) > 1) common.push_back(&leak);
  if (common.empty()) return "";
  const IndexedReport stacks(leaks_of_merged(report_));
  std::string text = style_.bold("LIVE MEMORY IN SEVERAL PROCESSES") + "\n";
  const std::size_t shown = top == 0 ? common.size() : std::min(top, common.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const model::MergedLeak& leak = *common[i];
    const std::string api = text_or(leak.api, "");
    text += padded(std::to_string(i + 1) + ".", 3, true) + " " +
            style_.bold(leak.bytes ? human_bytes(*leak.bytes) : "unknown bytes") + " in " +
            human_count(leak.processes.value_or(0)) + " processes (" + spread(leak) + ") · " +
            memory_name(leak.kind, std::nullopt) + (api.empty() ? "" : " · " + api) + "\n";
    add_stack(stacks, leak.stack, most_compared_frames, style_, text);
    if (const std::string steps = words_of_steps(leak.named_steps, leak.count.value_or(0));
        !steps.empty())
      text += "       made " + steps + "\n";
  }
  return text + more_line(common.size() - shown);
}

std::string MergedText::processes_of(const LeakingStep& step) const {
  constexpr std::size_t most_named = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(step.processes.size(), most_named); ++i)
    text += (i == 0 ? "" : ", ") + name_of(step.processes[i]);
  if (step.processes.size() > most_named)
    text += ", " + human_count(step.processes.size() - most_named) + " more";
  return text;
}

std::string MergedText::leaks_of(const LeakingStep& step) const {
  const model::MergedLeak& largest = report_.leaks[step.leaks.front() - 1];
  std::string text = largest.where ? "at " + printable(*largest.where)
                                   : "in leak " + printable(largest.fingerprint);
  if (step.leaks.size() > 1) text += ", and in " + number_of(step.leaks.size() - 1, "more leak");
  return text;
}

std::string MergedText::named_steps(std::size_t top) const {
  const std::vector<LeakingStep> steps = leaking_steps(report_);
  if (steps.empty()) return "";
  std::string text = style_.bold("LIVE MEMORY BY NAMED STEP") + "\n";
  const std::size_t shown = top == 0 ? steps.size() : std::min(top, steps.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const LeakingStep& step = steps[i];
    const model::NamedStep row{step.name, step.count, step.bytes};
    text += padded(std::to_string(i + 1) + ".", 3, true) + " " + style_.bold(name_of_step(row)) +
            " in " + processes_of(step) + ": " + sizes_of(row) + "\n       " + leaks_of(step) +
            "\n";
  }
  return text + more_line(steps.size() - shown);
}

}  // namespace

std::string device_name(const model::MergedDevice& device) {
  if (device.uuid && !device.uuid->empty()) return printable(*device.uuid);
  return "GPU " + std::to_string(device.device.value_or(0)) + " of " + host_name(device.host);
}

std::string merged_text(const model::MergedReport& report, std::size_t top, const Style& style) {
  const MergedText parts(report, style);
  std::string text;
  for (const std::string& part :
       {parts.first_refusal() + parts.idle_devices(), parts.processes(), parts.to_do(),
        parts.devices(), parts.common_leaks(top), parts.named_steps(top)})
    if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
  return text;
}

}  // namespace cuwarden
