#include "reporters/text_summary.hpp"

#include <algorithm>
#include <vector>

#include "reporters/quantities.hpp"
#include "reporters/signal_name.hpp"

namespace cuwarden {

using nlohmann::json;

std::string process_ending(const json& process) {
  const std::string reason = text_of(process, "end_reason", "");
  const std::uint64_t signal = number_of(process, "signal");
  std::string status;
  if (process.at("exit_status").is_number_integer()) {
    status = " with status " + std::to_string(process.at("exit_status").get<int>());
  }
  if (reason == "exit") return "exited" + status;
  if (reason == "_exit" || reason == "quick_exit") return "ended by " + reason + status;
  if (reason == "abort") return "aborted";
  if (reason == "signal") {
    return signal == 0 ? "killed by a signal"
                       : "killed by signal " + numbered_signal(static_cast<int>(signal));
  }
  if (reason == "running") return "was still running";
  return "ended, how is unknown";
}

std::string process_line(const ReportDocument& report, const LeakCheck& check, const Paint& paint) {
  const json& process = report.root().at("process");
  const json& job = report.root().at("job");
  std::string line = file_name(text_of(process, "program", "unknown program")) + " (pid " +
                     std::to_string(number_of(process, "pid")) + " on " +
                     text_of(process, "host", "an unknown host");
  if (job.at("rank").is_number_unsigned())
    line += ", rank " + std::to_string(number_of(job, "rank"));
  line += ") " + process_ending(process) + ": ";
  const std::string amount = human_bytes(check.bytes) + " in " + allocations(check.count);
  if (check.count == 0) {
    line += check.doubt ? paint.yellow("no leaks are known, but records are missing")
                        : paint.green("no leaks");
  } else if (was_running(report)) {
    line += amount + " allocated";
  } else {
    line += amount + (was_at_work(report) ? paint.red(" not freed") : paint.red(" leaked"));
  }
  const std::size_t incidents = report.table("incidents").size();
  if (incidents > 0)
    line += "; " + human_count(incidents) +
            (incidents == 1 ? " request was refused" : " requests were refused");
  return line;
}

void DeviceSummary::add(const ReportDocument& report) {
  const std::string host = text_of(report.root().at("process"), "host", "an unknown host");
  for (const json& row : report.table("devices")) {
    const std::uint64_t ordinal = number_of(row, "device");
    const std::string uuid = text_of(row, "uuid", "");
    // Where the UUID is unknown, the host and the number tell devices apart as well as can be.
    Device& device =
        devices_[uuid.empty() ? "GPU " + std::to_string(ordinal) + " of " + host : uuid];
    device.name = text_of(row, "name", "unknown");
    device.host = host;
    ++device.processes;
    for (const json& total : report.table("totals")) {
      if (total.at("device") != row.at("device")) continue;
      device.live_bytes += number_of(total, "live_bytes");
      device.peak_bytes += number_of(total, "peak_bytes");
    }
    for (const json& incident : report.table("incidents"))
      device.refused += incident.at("device") == row.at("device") ? 1 : 0;
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
