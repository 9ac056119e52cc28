#include "reporters/text_incidents.hpp"

#include <algorithm>
#include <vector>

#include "reporters/merged_rows.hpp"
#include "reporters/printable.hpp"
#include "reporters/quantities.hpp"

namespace cuwarden {
namespace {

using nlohmann::json;

constexpr std::size_t most_incidents = 5, most_holders = 3, most_frames = 12,
                      most_holder_frames = 4;

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : human_count(count) + " times";
}

// "cudaMalloc of 8.0 GiB (GPU 0)", "cuLaunchKernel needing 2.1 GiB (GPU 0)"
std::string request_of(const json& incident) {
  std::string text = text_of(incident, "api", "a request");
  const std::string asked = text_of(incident, "asked_for", "memory");
  if (incident.at("bytes").is_number_unsigned())
    text += (asked == "launch" ? " needing " : " of ") + human_bytes(number_of(incident, "bytes"));
  const std::string kind = text_of(incident, "kind", "");
  if (incident.at("device").is_number_unsigned())
    text += " (GPU " + std::to_string(number_of(incident, "device")) + ")";
  else if (kind == "pinned" || kind == "registered")
    text += " (host)";
  if (asked == "context") text += ", making a context,";
  if (asked == "module") text += ", loading code,";
  return text;
}

// Sizes as people read them, and the rest as it is.
std::string proof_of(const json& incident) {
  std::string text;
  for (const auto& [name, value] : incident.at("proof").items()) {
    // What was asked for has been said, and what is nothing proves nothing.
    if (name == "requested_bytes" || value == 0) continue;
    std::string words = printable(name);
    const bool bytes = words.ends_with("_bytes");
    if (bytes) words.resize(words.size() - 6);
    std::ranges::replace(words, '_', ' ');
    std::string figure = "unknown";
    if (value.is_string()) figure = printable(value.get<std::string>());
    if (value.is_number_unsigned())
      figure =
          bytes ? human_bytes(value.get<std::uint64_t>()) : human_count(value.get<std::uint64_t>());
    text += (text.empty() ? "" : " · ") + words + " " + figure;
  }
  return text;
}

bool grows(const json& holder) {
  const auto rate = holder.find("growth_bytes_per_minute");
  return rate != holder.end() && rate->is_number_unsigned();
}

void add_holders(const ReportDocument& report, const json& incident, const Paint& paint,
                 std::string& text) {
  std::vector<const json*> rows;
  for (const json& holder : report.table("incident_holders"))
    if (holder.at("incident") == incident.at("id")) rows.push_back(&holder);
  if (rows.empty()) return;
  std::vector<json> holders = MergedRows(report).of(rows, {"kind"});
  const auto locks_slabs = [](const json& holder) {
    return number_of(holder, "slab_locked_bytes") > 0;
  };
  const bool locked = text_of(incident, "verdict", "") == "slab_fragmentation" &&
                      std::ranges::any_of(holders, locks_slabs);
  const bool any_grows = std::ranges::any_of(holders, grows);
  std::ranges::stable_sort(holders, [locked](const json& left, const json& right) {
    const std::uint64_t left_locked = locked ? number_of(left, "slab_locked_bytes") : 0,
                        right_locked = locked ? number_of(right, "slab_locked_bytes") : 0;
    if (left_locked != right_locked) return left_locked > right_locked;
    const bool left_grows = grows(left), right_grows = grows(right);
    if (left_grows != right_grows) return left_grows;
    return number_of(left, "bytes") > number_of(right, "bytes");
  });
  text += locked      ? "  who locks slabs, most first, and who held most at that moment:\n"
          : any_grows ? "  who held it at that moment, first what grows:\n"
                      : "  who held it at that moment, most first:\n";
  for (std::size_t i = 0; i < holders.size() && i < most_holders; ++i) {
    text += "    " + paint.bold(human_bytes(number_of(holders[i], "bytes"))) + " in " +
            allocations(number_of(holders[i], "count")) + " · " + text_of(holders[i], "kind", "") +
            (locked && locks_slabs(holders[i])
                 ? " · locks " + human_bytes(number_of(holders[i], "slab_locked_bytes"))
                 : "") +
            (grows(holders[i]) ? " · " + paint.red("growing") : "") + "\n";
    add_stack(report, holders[i], most_holder_frames, paint, text);
  }
}

// Where a scheduler shares out the devices, which one it is: each process counts those that it sees
// from 0, so that their numbers tell nothing of who shares one.
std::string sharing_of(const ReportDocument& report, const json& incident) {
  const std::string verdict = text_of(incident, "verdict", "");
  const json& job = report.root().at("job");
  if ((verdict != "held_by_other_processes" && verdict != "held_by_unlisted_owner") ||
      !job.at("job_id").is_string())
    return {};
  std::string text = "this is ";
  if (job.at("rank").is_number_unsigned())
    text += "rank " + std::to_string(number_of(job, "rank")) + " of ";
  text += text_of(job, "scheduler", "") + " job " + text_of(job, "job_id", "") +
          (visible_devices(report) ? " with " + *visible_devices(report)
                                   : std::string(", without CUDA_VISIBLE_DEVICES"));
  for (const json& device : report.table("devices")) {
    if (device.at("device") != incident.at("device")) continue;
    const std::string uuid = text_of(device, "uuid", "");
    if (!uuid.empty())
      text += ", where GPU " + std::to_string(number_of(device, "device")) + " is " + uuid;
  }
  return text +
         ": if other ranks' reports name the same device, give each rank a device of its own";
}

// "synchronise 2.0 s (timed out) · reclaim torch 1.2 ms (no memory) · pool (nothing to do)": what
// was tried at the first refusal.
std::string attempts_of(const ReportDocument& report, const json& incident) {
  std::string text;
  for (const json& rung : report.table("rungs")) {
    std::string outcome = text_of(rung, "outcome", "");
    if (rung.at("incident") != incident.at("id")) continue;
    const bool took_time = !outcome.starts_with("nothing_") || outcome == "nothing_gained";
    const bool is_timed = number_of(rung, "duration_ns") != 0 && took_time;
    std::ranges::replace(outcome, '_', ' ');
    text += (text.empty() ? "" : " · ") + text_of(rung, "rung", "") +
            (rung.at("reclaimer").is_string() ? " " + text_of(rung, "reclaimer", "") : "") +
            (is_timed ? " " + human_time(number_of(rung, "duration_ns")) : "") + " (" + outcome +
            ")";
  }
  return text;
}

void add_incident(const ReportDocument& report, const json& incident, const Paint& paint,
                  std::string& text) {
  const std::uint64_t all = number_of(incident, "repeats") + 1;
  const std::uint64_t recovered = number_of(incident, "recovered_count"),
                      rescued = number_of(incident, "rescued_count"),
                      seen = incident.contains("failed_count") ? number_of(incident, "failed_count")
                                                               : all - std::min(all, rescued),
                      open = all - std::min(all, rescued + seen);
  // A compute mode refuses contexts, however much is free.
  const bool lacked_memory = text_of(incident, "result", "") == "CUDA_ERROR_OUT_OF_MEMORY";
  text += "\n" + paint.red(lacked_memory ? "OUT OF MEMORY" : "REFUSED") + ": " +
          paint.bold(request_of(incident)) + (seen == all ? " failed" : " was refused") +
          (all > 1 ? " " + times(all) + ", first" : "") + " after " +
          human_time(number_of(incident, "time_ns")) + ": " +
          paint.bold(text_of(incident, "verdict", "unknown")) + "\n";
  const std::string advice = text_of(incident, "advice", "");
  if (!advice.empty()) text += "  " + printable(advice) + "\n";
  if (const std::string sharing = sharing_of(report, incident); !sharing.empty())
    text += "  " + sharing + "\n";
  if (const std::string proof = proof_of(incident); !proof.empty())
    text += paint.dim("  " + proof) + "\n";
  if (all > 1) {
    text += paint.dim("  the figures are of the first; the last") +
            (incident.at("last_bytes").is_number_unsigned()
                 ? paint.dim(" was of " + human_bytes(number_of(incident, "last_bytes")) + ",")
                 : paint.dim(" was")) +
            paint.dim(" after " + human_time(number_of(incident, "last_ns"))) + "\n";
  }
  if (rescued > 0)
    text += "  " + human_count(rescued) + " of them " + (rescued == 1 ? "was" : "were") +
            " served all the same, " + (rescued == 1 ? "by " : "mostly by ") +
            text_of(incident, "rescued_by", "another try") + "; the program saw " +
            human_count(seen) + " fail\n";
  if (open > 0)
    text += "  " +
            (all == 1 ? std::string("it was")
                      : human_count(open) + (open == 1 ? " of them was" : " of them were")) +
            " still being tried: the program had not heard of it\n";
  if (const std::string attempts = attempts_of(report, incident); !attempts.empty())
    text += paint.dim((all > 1 ? "  tried for the first: " : "  tried: ") + attempts) + "\n";
  if (recovered > 0)
    text += "  the program freed something and was served the same afterwards " + times(recovered) +
            "\n";
  for (const json& process : report.table("device_processes")) {
    if (process.find("incident") == process.end() || process.at("incident") != incident.at("id"))
      continue;
    text += "    pid " + std::to_string(number_of(process, "pid")) + " held " +
            (process.at("used_bytes").is_number_unsigned()
                 ? human_bytes(number_of(process, "used_bytes"))
                 : std::string("some of it")) +
            "\n";
  }
  add_stack(report, incident, most_frames, paint, text);
  add_holders(report, incident, paint, text);
}

// What would have been the end, and was not.
void add_rescue(const ReportDocument& report, const json& incident, const Paint& paint,
                std::string& text) {
  const std::uint64_t all = number_of(incident, "repeats") + 1;
  text += "\n" + paint.yellow("RESCUED") + ": " + paint.bold(request_of(incident)) +
          " would have failed" + (all > 1 ? " " + times(all) + ", first" : "") + " after " +
          human_time(number_of(incident, "time_ns")) + ": " +
          text_of(incident, "verdict", "unknown") +
          (all > 1 ? ", and all were served, mostly by " : ", and was served by ") +
          paint.bold(text_of(incident, "rescued_by", "another try"));
  std::uint64_t tried_ns = 0;
  for (const json& rung : report.table("rungs")) {
    if (rung.at("incident") != incident.at("id")) continue;
    tried_ns += number_of(rung, "duration_ns");
    if (rung.at("outcome") == "served" && rung.at("rung") == incident.at("rescued_by"))
      text +=
          (rung.at("reclaimer").is_string() ? " (" + text_of(rung, "reclaimer", "") + ")" : "") +
          (all > 1 ? ", the first in " : " in ") + human_time(tried_ns);
  }
  text += "\n";
  if (const std::string attempts = attempts_of(report, incident); !attempts.empty())
    text += paint.dim((all > 1 ? "  tried for the first: " : "  tried: ") + attempts) + "\n";
  add_stack(report, incident, most_frames, paint, text);
}

}  // namespace

void add_incidents(const ReportDocument& report, const Paint& paint, std::string& text) {
  std::size_t failed = 0;
  std::uint64_t recoveries = 0;
  for (const json& incident : report.table("incidents")) {
    if (incident.at("outcome") == "rescued") {
      add_rescue(report, incident, paint, text);
      continue;
    }
    if (incident.at("outcome") == "recovered_by_caller") {
      const std::uint64_t served = number_of(incident, "rescued_count");
      recoveries += number_of(incident, "repeats") + 1 - served;
      continue;
    }
    if (failed++ < most_incidents) add_incident(report, incident, paint, text);
  }
  if (failed > most_incidents) {
    text += paint.dim("\n  … and requests from " + human_count(failed - most_incidents) +
                      " more places failed; they are in the report") +
            "\n";
  }
  if (recoveries > 0) {
    text += "\n" +
            paint.dim("  no alarm: " + human_count(recoveries) +
                      (recoveries == 1 ? " request" : " requests") +
                      " failed, and the program asked again and was served") +
            "\n";
  }
}

}  // namespace cuwarden
