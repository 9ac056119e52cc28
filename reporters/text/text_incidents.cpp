#include "reporters/text/text_incidents.hpp"

#include <algorithm>
#include <vector>

#include "reporters/text/elements/moments.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/text/headline/headline.hpp"
#include "reporters/text/headline/top_holders.hpp"
#include "reporters/text/shown_holders.hpp"
#include "reporters/text/text_rungs.hpp"
#include "reporters/verdicts/verdicts.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/process_words.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

constexpr std::size_t most_incidents = 5, most_incident_lines = 12, most_holder_lines = 4;

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : human_count(count) + " times";
}

// Returns the time that all rungs together took for the incident's first refusal, in nanoseconds.
std::uint64_t tried_ns(const IndexedReport& report, const model::Incident& incident) {
  std::uint64_t sum = 0;
  for (const auto& rung : report->rungs)
    if (rung.incident == incident.id) sum += rung.duration_ns.value_or(0);
  return sum;
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

// Returns words for the kind of the holder's memory. They are empty if objects are counted, whose
// number names their kind.
std::string source_of(const model::IncidentHolder& holder) {
  if (is_block(holder)) return " · handed out by PyTorch";
  const std::string& kind = holder.kind;
  if (kind == "module" || kind == "stream" || kind == "context" || kind == "graph_exec") return "";
  return " · " + memory_name(kind, std::nullopt);
}

void add_holders(const IndexedReport& report, const model::Incident& incident,
                 const TextOptions& options, const Style& style, std::string& text) {
  const std::vector<model::IncidentHolder> holders = top_holders(report, incident, style);
  if (holders.empty()) return;
  const bool locked = holders_lock_slabs(incident, holders);
  const bool any_grows = std::ranges::any_of(holders, grows);
  text += locked      ? "  top holders of locked slabs, then of memory, at that moment:\n"
          : any_grows ? "  top holders at that moment, growing ones first:\n"
                      : "  top holders at that moment:\n";
  const std::size_t shown = shown_holders(holders.size(), options.top);
  for (std::size_t i = 0; i < shown; ++i) {
    text += "    " + style.bold(human_bytes(holders[i].bytes.value_or(0))) + " in " +
            counted(holders[i].count.value_or(0), holders[i].kind) + source_of(holders[i]) +
            (locked && holders[i].slab_locked_bytes.value_or(0) > 0
                 ? " · locks " + human_bytes(holders[i].slab_locked_bytes.value_or(0))
                 : "") +
            (grows(holders[i]) ? " · " + style.red("growing") : "") + "\n";
    add_stack(report, holders[i].stack, most_holder_lines, style, text);
  }
  std::uint64_t rest = 0;
  for (std::size_t i = shown; i < holders.size(); ++i) rest += holders[i].bytes.value_or(0);
  add_left_out_holders(holders.size() - shown, rest, style, text);
}

// In a job, returns a text that names the device beyond its number: each process counts the devices
// that it sees from 0, so that numbers do not tell which ranks share a device.
std::string sharing_of(const IndexedReport& report, const model::Incident& incident) {
  const auto& job = report->job;
  if (named_holders(incident.verdict) != NamedHolders::others || !job.job_id) return {};
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
// 2026-01-31 12:00:00", in the time zone of this machine.
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
  if (const auto start_ns = parse_iso_8601(process.start.value_or("")))
    text += " · started " + time_of_day(*start_ns, true);
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

// Adds what proves the cause of a failed request, and what was attempted.
void add_evidence(const IndexedReport& report, const model::Incident& incident, const Style& style,
                  std::string& text) {
  const std::uint64_t all = incident.repeats.value_or(0) + 1;
  const std::uint64_t recovered = incident.recovered_count.value_or(0),
                      rescued = incident.rescued_count.value_or(0),
                      seen = incident.failed_count.value_or(all - std::min(all, rescued)),
                      open = all - std::min(all, rescued + seen);
  constexpr std::uint64_t noticeable_ns = 1'000'000;
  const std::uint64_t took_ns = tried_ns(report, incident);
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
  if (took_ns >= noticeable_ns)
    text += style.dim("  the attempts took " + human_time(took_ns)) + "\n";
  if (recovered > 0)
    text += "  the program soon asked again and was served " + times(recovered) + "\n";
}

// Adds what happened to requests that were all served by the ladder.
void add_rescue_words(const IndexedReport& report, const model::Incident& incident,
                      const Style& style, std::string& text) {
  const std::uint64_t all = incident.repeats.value_or(0) + 1;
  text += style.yellow("RESCUED") + ": " + style.bold(request_words(incident)) +
          " would have failed" + (all > 1 ? " " + times(all) + ", first" : "") + " " +
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

void add_processes(const IndexedReport& report, const model::Incident& incident,
                   std::string& text) {
  for (const auto& process : report->device_processes)
    if (process.incident == incident.id) text += "    " + process_line(process) + "\n";
}

}  // namespace

void add_incident_words(const IndexedReport& report, const model::Incident& incident,
                        bool is_headline, const Style& style, std::string& text) {
  if (incident.outcome == "rescued") return add_rescue_words(report, incident, style, text);
  if (is_headline)
    text += style.bold("EVIDENCE for " + printable(incident.verdict)) + "\n";
  else
    add_headline(headline_of_incident(report, incident, style), style, text);
  add_evidence(report, incident, style, text);
  add_processes(report, incident, text);
}

void add_incidents(const IndexedReport& report, model::MaybeId of_headline,
                   const TextOptions& options, const Style& style, std::string& text) {
  std::size_t failed = 0, left_out = 0;
  std::uint64_t recoveries = 0;
  for (const auto& incident : report->incidents) {
    const auto add = [&](bool is_headline) {
      text += "\n";
      add_incident_words(report, incident, is_headline, style, text);
      text += "  the request was made at\n";
      add_stack(report, incident.stack, most_incident_lines, style, text);
      if (incident.outcome != "rescued") add_holders(report, incident, options, style, text);
    };
    if (incident.outcome == "rescued") {
      add(false);
      continue;
    }
    if (incident.outcome == "recovered_by_caller") {
      const std::uint64_t served = incident.rescued_count.value_or(0);
      recoveries += incident.repeats.value_or(0) + 1 - served;
      continue;
    }
    const bool is_headline = incident.id == of_headline;
    if (is_headline || failed < most_incidents)
      add(is_headline);
    else
      ++left_out;
    ++failed;
  }
  if (left_out > 0) {
    text += style.dim("\n  … and requests from " + human_count(left_out) +
                      (left_out == 1 ? " more call stack" : " more call stacks") +
                      " failed; they are in the report") +
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
