#include "reporters/text/text_incidents.hpp"

#include <algorithm>
#include <vector>

#include "reporters/text/merged_rows.hpp"
#include "reporters/text/text_rungs.hpp"
#include "reporters/text/text_stacks.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/process_words.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/wall_clock.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

constexpr std::size_t most_incidents = 5, most_holders = 3, most_incident_lines = 12,
                      most_holder_lines = 4;

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : human_count(count) + " times";
}

// Returns a text such as "at 14:03:11, 17.8 s into the run", with the date in a long run;
// "after 17.8 s" if the time of the process's start is unknown. `since_start_ns`: time since that
// start.
std::string moment_of(const IndexedReport& report, std::uint64_t since_start_ns) {
  constexpr std::uint64_t long_ns = 12ull * 3600 * 1'000'000'000;
  const auto start = parse_iso_8601(report->process.start);
  const std::string elapsed = human_time(since_start_ns);
  // A foreign report may claim any number.
  constexpr std::uint64_t longest_ns = std::uint64_t{1} << 60;
  if (!start || since_start_ns > longest_ns) return "after " + elapsed;
  return "at " +
         time_of_day(*start + static_cast<std::int64_t>(since_start_ns), since_start_ns > long_ns) +
         ", " + elapsed + " into the run";
}

// Returns the time that all rungs together took for the incident's first refusal, in nanoseconds.
std::uint64_t tried_ns(const IndexedReport& report, const model::Incident& incident) {
  std::uint64_t sum = 0;
  for (const auto& rung : report->rungs)
    if (rung.incident == incident.id) sum += rung.duration_ns.value_or(0);
  return sum;
}

// Returns a text such as "cudaMalloc of 8.0 GiB (GPU 0)" or "cuLaunchKernel needing 2.1 GiB (GPU
// 0)".
std::string request_of(const model::Incident& incident) {
  std::string text = text_or(incident.api, "a request");
  const std::string asked = text_or(incident.asked_for, "memory");
  if (incident.bytes)
    text += (asked == "launch" ? " needing " : " of ") + human_bytes(*incident.bytes);
  const std::string kind = text_or(incident.kind, "");
  if (incident.device)
    text += " (GPU " + std::to_string(*incident.device) + ")";
  else if (kind == "pinned" || kind == "registered")
    text += " (host)";
  if (asked == "context") text += ", making a context,";
  if (asked == "module") text += ", loading code,";
  return text;
}

// Returns the figures of the proof as a text, with sizes such as "1.5 GiB".
std::string proof_of(const model::Incident& incident) {
  std::string text;
  model::Proof proof = incident.proof;
  std::ranges::sort(proof);
  for (const auto& [name, value] : proof) {
    const auto* const number = std::get_if<std::uint64_t>(&value);
    const auto* const known = std::get_if<std::string>(&value);
    // The requested bytes are left out because the headline has them, and zeros because they
    // prove nothing.
    if (name == "requested_bytes" || (number != nullptr && *number == 0)) continue;
    std::string words = printable(name);
    const bool bytes = words.ends_with("_bytes");
    if (bytes) words.resize(words.size() - 6);
    std::ranges::replace(words, '_', ' ');
    std::string figure = "unknown";
    if (known != nullptr) figure = printable(*known);
    if (number != nullptr) figure = bytes ? human_bytes(*number) : human_count(*number);
    text += (text.empty() ? "" : " · ") + words + " " + figure;
  }
  return text;
}

bool grows(const model::IncidentHolder& holder) {
  return holder.growth_bytes_per_minute.has_value();
}

bool is_block(const model::IncidentHolder& holder) {
  return holder.kind == kind_name(Kind::framework_block);
}

void add_holders(const IndexedReport& report, const model::Incident& incident, const Style& style,
                 std::string& text) {
  std::vector<const model::IncidentHolder*> rows;
  for (const auto& holder : report->incident_holders)
    if (holder.incident == incident.id) rows.push_back(&holder);
  if (rows.empty()) return;
  std::vector<model::IncidentHolder> holders =
      merged_rows(report, rows, [](const auto& holder) { return holder.kind; });
  const auto locks_slabs = [](const model::IncidentHolder& holder) {
    return holder.slab_locked_bytes.value_or(0) > 0;
  };
  const bool locked =
      incident.verdict == "slab_fragmentation" && std::ranges::any_of(holders, locks_slabs);
  const bool any_grows = std::ranges::any_of(holders, grows);
  std::ranges::stable_sort(holders, [locked](const auto& left, const auto& right) {
    const std::uint64_t left_locked = locked ? left.slab_locked_bytes.value_or(0) : 0,
                        right_locked = locked ? right.slab_locked_bytes.value_or(0) : 0;
    if (left_locked != right_locked) return left_locked > right_locked;
    const bool left_grows = grows(left), right_grows = grows(right);
    if (left_grows != right_grows) return left_grows;
    // Blocks tell whose memory it is; the segments in which they lie do not.
    const bool left_is_block = is_block(left), right_is_block = is_block(right);
    if (left_is_block != right_is_block) return left_is_block;
    return left.bytes.value_or(0) > right.bytes.value_or(0);
  });
  text += locked      ? "  top holders of locked slabs, then of memory, at that moment:\n"
          : any_grows ? "  top holders at that moment, growing ones first:\n"
                      : "  top holders at that moment:\n";
  for (std::size_t i = 0; i < holders.size() && i < most_holders; ++i) {
    text += "    " + style.bold(human_bytes(holders[i].bytes.value_or(0))) + " in " +
            counted(holders[i].count.value_or(0), holders[i].kind) + " · " +
            (is_block(holders[i]) ? "handed out by PyTorch" : printable(holders[i].kind)) +
            (locked && locks_slabs(holders[i])
                 ? " · locks " + human_bytes(holders[i].slab_locked_bytes.value_or(0))
                 : "") +
            (grows(holders[i]) ? " · " + style.red("growing") : "") + "\n";
    add_stack(report, holders[i].stack, most_holder_lines, style, text);
  }
}

// In a job, returns a text that names the device beyond its number: each process counts the devices
// that it sees from 0, so that numbers do not tell which ranks share a device.
std::string sharing_of(const IndexedReport& report, const model::Incident& incident) {
  const std::string& verdict = incident.verdict;
  const auto& job = report->job;
  if ((verdict != "held_by_other_processes" && verdict != "held_by_unlisted_owner") || !job.job_id)
    return {};
  std::string text = "this is ";
  if (job.rank) text += "rank " + std::to_string(*job.rank) + " of ";
  text += text_or(job.scheduler, "") + " job " + text_or(job.job_id, "") +
          (visible_devices(report) ? " with " + *visible_devices(report)
                                   : std::string(", without CUDA_VISIBLE_DEVICES"));
  for (const auto& device : report->devices) {
    if (device.device != incident.device) continue;
    const std::string uuid = text_or(device.uuid, "");
    if (!uuid.empty()) text += ", where GPU " + std::to_string(device.device) + " is " + uuid;
  }
  return text +
         ": if other ranks' reports name the same device, give each rank a device of its own";
}

// Returns a text such as "pid 17 (python3, user alice) held 70.0 GiB · Slurm job 4711 · started
// 2026-01-31T12:00:00Z".
std::string process_line(const model::DeviceProcess& process) {
  std::string text = process_words(process.pid.value_or(0), text_or(process.program, ""),
                                   text_or(process.user, ""));
  const std::string bytes =
      process.used_bytes ? human_bytes(*process.used_bytes) : std::string("unknown bytes");
  text += text_or(process.seen_by, "") == "device_file" ? " had the device's file open"
                                                        : " held " + bytes;
  const auto add = [&](const char* words, const model::Text& value) {
    if (value) text += std::string(" · ") + words + text_or(value, "");
  };
  add("Slurm job ", process.job);
  add("container ", process.container);
  add("pod ", process.pod);
  add("", process.unit);
  const std::string start = text_or(process.start, "");
  if (!start.empty()) text += " · started " + start.substr(0, start.find('.')) + "Z";
  const std::string state = text_or(process.state, "");
  if (state == "zombie")
    text += " · a zombie" +
            (process.parent
                 ? ", whose parent is " +
                       process_words(*process.parent, text_or(process.parent_program, ""), "")
                 : std::string());
  if (state == "stuck") text += " · stuck in the kernel";
  return text;
}

// Adds what happened to requests that failed, what to do, and the proof.
void add_failure_words(const IndexedReport& report, const model::Incident& incident,
                       const Style& style, std::string& text) {
  const std::uint64_t all = incident.repeats.value_or(0) + 1;
  const std::uint64_t recovered = incident.recovered_count.value_or(0),
                      rescued = incident.rescued_count.value_or(0),
                      seen = incident.failed_count.value_or(all - std::min(all, rescued)),
                      open = all - std::min(all, rescued + seen);
  constexpr std::uint64_t noticeable_ns = 1'000'000;
  const std::uint64_t took_ns = tried_ns(report, incident);
  // A compute mode refuses contexts, however much is free.
  const bool lacked_memory = incident.result == "CUDA_ERROR_OUT_OF_MEMORY";
  text += style.red(lacked_memory ? "OUT OF MEMORY" : "REFUSED") + ": " +
          style.bold(request_of(incident)) + (seen == all ? " failed" : " was refused") +
          (all > 1 ? " " + times(all) + ", first" : "") + " " +
          moment_of(report, incident.time_ns.value_or(0)) +
          (took_ns >= noticeable_ns ? ", after attempts of " + human_time(took_ns) : "") + ": " +
          style.bold(printable(incident.verdict)) + "\n";
  const std::string advice = text_or(incident.advice, "");
  if (!advice.empty()) text += "  " + printable(advice) + "\n";
  if (const std::string sharing = sharing_of(report, incident); !sharing.empty())
    text += "  " + sharing + "\n";
  if (const std::string proof = proof_of(incident); !proof.empty())
    text += style.dim("  " + proof) + "\n";
  if (all > 1) {
    text += style.dim("  the figures are those of the first refusal; the last one") +
            (incident.last_bytes ? style.dim(" was of " + human_bytes(*incident.last_bytes) + ",")
                                 : style.dim(" was")) +
            style.dim(" " + moment_of(report, incident.last_ns.value_or(0))) + "\n";
  }
  if (rescued > 0)
    text += "  " + human_count(rescued) + " of them " + (rescued == 1 ? "was" : "were") +
            " served all the same, " + (rescued == 1 ? "by " : "mostly by ") +
            text_or(incident.rescued_by, "another try") + "; the program saw " + human_count(seen) +
            " fail\n";
  if (open > 0)
    text += "  " +
            (all == 1 ? std::string("the request was")
                      : human_count(open) + (open == 1 ? " of them was" : " of them were")) +
            " still being tried: the program had not got an answer yet\n";
  add_rungs(report, incident, style, text);
  if (recovered > 0)
    text += "  the program soon asked again and was served " + times(recovered) + "\n";
  for (const auto& process : report->device_processes)
    if (process.incident == incident.id) text += "    " + process_line(process) + "\n";
}

// Adds what happened to requests that were all served by the ladder.
void add_rescue_words(const IndexedReport& report, const model::Incident& incident,
                      const Style& style, std::string& text) {
  const std::uint64_t all = incident.repeats.value_or(0) + 1;
  text += style.yellow("RESCUED") + ": " + style.bold(request_of(incident)) + " would have failed" +
          (all > 1 ? " " + times(all) + ", first" : "") + " " +
          moment_of(report, incident.time_ns.value_or(0)) + ": " + printable(incident.verdict) +
          (all > 1 ? ", and all were served, mostly by " : ", and was served by ") +
          style.bold(text_or(incident.rescued_by, "another try"));
  for (const auto& rung : report->rungs) {
    if (rung.incident != incident.id) continue;
    if (rung.outcome == "served" && rung.rung == incident.rescued_by)
      text += (rung.reclaimer ? " (" + text_or(rung.reclaimer, "") + ")" : "") +
              (all > 1 ? ", the first in " : " in ") + human_time(tried_ns(report, incident));
  }
  text += "\n";
  add_rungs(report, incident, style, text);
}

void add_incident(const IndexedReport& report, const model::Incident& incident, const Style& style,
                  std::string& text) {
  text += "\n";
  add_incident_words(report, incident, style, text);
  add_stack(report, incident.stack, most_incident_lines, style, text);
  if (incident.outcome != "rescued") add_holders(report, incident, style, text);
}

}  // namespace

void add_incident_words(const IndexedReport& report, const model::Incident& incident,
                        const Style& style, std::string& text) {
  if (incident.outcome == "rescued")
    add_rescue_words(report, incident, style, text);
  else
    add_failure_words(report, incident, style, text);
}

void add_incidents(const IndexedReport& report, const Style& style, std::string& text) {
  std::size_t failed = 0;
  std::uint64_t recoveries = 0;
  for (const auto& incident : report->incidents) {
    if (incident.outcome == "rescued") {
      add_incident(report, incident, style, text);
      continue;
    }
    if (incident.outcome == "recovered_by_caller") {
      const std::uint64_t served = incident.rescued_count.value_or(0);
      recoveries += incident.repeats.value_or(0) + 1 - served;
      continue;
    }
    if (failed++ < most_incidents) add_incident(report, incident, style, text);
  }
  if (failed > most_incidents) {
    text += style.dim("\n  … and requests from " + human_count(failed - most_incidents) +
                      " more call stacks failed; they are in the report") +
            "\n";
  }
  if (recoveries > 0) {
    text += "\n" +
            style.dim("  no alarm: " + human_count(recoveries) +
                      (recoveries == 1 ? " request" : " requests") +
                      " failed, but the program asked again and was served") +
            "\n";
  }
}

}  // namespace cuwarden
