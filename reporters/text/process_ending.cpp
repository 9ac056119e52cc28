#include "reporters/text/process_ending.hpp"

#include <csignal>
#include <cstdint>

#include "reporters/text/text_elements.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/signal_name.hpp"

namespace cuwarden {

std::string process_ending(const model::Text& end_reason, const model::SignedFigure& exit_status,
                           const model::Figure& signal_or_null) {
  const std::string reason = text_or(end_reason, "");
  const std::uint64_t signal = signal_or_null.value_or(0);
  std::string status;
  if (exit_status) status = " with status " + std::to_string(*exit_status);
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

std::string words_about_oom_killer(const IndexedReport& report) {
  const auto& process = report->process;
  const model::MemoryCgroup cgroup = report->memory_cgroup.value_or(model::MemoryCgroup());
  const std::uint64_t kills = cgroup.oom_kills.value_or(0);
  const bool died_so = !process.end_reason || process.signal.value_or(0) == SIGKILL;
  if (kills == 0 || !died_so) return {};
  const bool limited = cgroup.limit_bytes.value_or(0) != 0;
  std::string peak;
  if (cgroup.peak_bytes.value_or(0) != 0)
    peak = ", peak " + human_bytes(cgroup.peak_bytes.value_or(0));
  return "the kernel's OOM killer struck in its cgroup" +
         (limited ? " (limit " + human_bytes(cgroup.limit_bytes.value_or(0)) + peak + "): "
                  : std::string(", which has no limit: the machine ran out of memory; ")) +
         human_count(kills) + (kills == 1 ? " process was killed" : " processes were killed");
}

}  // namespace cuwarden
