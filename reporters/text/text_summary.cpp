#include "reporters/text/text_summary.hpp"

#include <algorithm>
#include <vector>

#include "reporters/words/paths.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/signal_name.hpp"

namespace cuwarden {

std::string process_ending(const model::Process& process) {
  const std::string reason = text_or(process.end_reason, "");
  const std::uint64_t signal = process.signal.value_or(0);
  std::string status;
  if (process.exit_status) {
    status = " with status " + std::to_string(*process.exit_status);
  }
  if (reason == "exit") return "exited" + status;
  if (reason == "_exit" || reason == "quick_exit") return "ended by " + reason + status;
  if (reason == "abort") return "aborted";
  if (reason == "signal") {
    return signal == 0 ? "killed by a signal"
                       : "killed by signal " + numbered_signal(static_cast<int>(signal));
  }
  if (reason == "running") return "was still running";
  return "ended in a way that was not seen";
}

std::string process_line(const IndexedReport& report, const LeakCheck& check, const Style& style) {
  const auto& process = report->process;
  const auto& job = report->job;
  std::string line = std::string(file_name(text_or(process.program, "unknown program"))) +
                     " (pid " + std::to_string(process.pid.value_or(0)) + " on " +
                     text_or(process.host, "an unknown host");
  if (job.rank) line += ", rank " + std::to_string(job.rank.value_or(0));
  line += ") " + process_ending(process) + ": ";
  const std::string amount = human_bytes(check.bytes) + " in " + allocations(check.count);
  if (check.count == 0) {
    line += check.doubt ? style.yellow("no leaks are known, but records are missing")
                        : style.green("no leaks");
  } else if (was_running(report)) {
    line += amount + " allocated";
  } else {
    line += amount + (was_at_work(report) ? style.red(" not freed") : style.red(" leaked"));
  }
  const std::size_t incidents = report->incidents.size();
  if (incidents > 0)
    line += "; " + human_count(incidents) +
            (incidents == 1 ? " request was refused" : " requests were refused");
  return line;
}

void DeviceSummary::add(const IndexedReport& report) {
  const std::string host = text_or(report->process.host, "an unknown host");
  for (const auto& row : report->devices) {
    const std::string uuid = text_or(row.uuid, "");
    // If the UUID is unknown, the host and the number tell devices apart as well as can be.
    Device& device =
        devices_[uuid.empty() ? "GPU " + std::to_string(row.device) + " of " + host : uuid];
    device.name = text_or(row.name, "unknown");
    device.host = host;
    ++device.processes;
    for (const auto& total : report->totals) {
      if (total.device != row.device) continue;
      device.live_bytes += total.live_bytes.value_or(0);
      device.peak_bytes += total.peak_bytes.value_or(0);
    }
    for (const auto& incident : report->incidents)
      device.refused += incident.device == row.device ? 1 : 0;
  }
}

std::string DeviceSummary::lines() const {
  std::string text;
  for (const auto& [id, device] : devices_) {
    text += id + " (" + device.name + " on " + device.host + "): " + human_count(device.processes) +
            (device.processes == 1 ? " process, " : " processes, ") +
            human_bytes(device.live_bytes) + " live at the end, peaks of " +
            human_bytes(device.peak_bytes) + " in all";
    if (device.refused > 0)
      text += ", " + human_count(device.refused) +
              (device.refused == 1 ? " refused request" : " refused requests");
    text += "\n";
  }
  return text;
}

}  // namespace cuwarden
