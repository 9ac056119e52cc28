#include "reporters/text/text_rungs.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

std::string with_blanks(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

// Returns the outcome of a rung in words. The outcome `unsafe` says why something was left out.
std::string outcome_of(const model::Rung& rung) {
  std::string outcome = with_blanks(printable(rung.outcome));
  if (rung.outcome != "unsafe" || rung.rung == "reclaim") return outcome;
  outcome += rung.rung == "synchronise" ? ": streams were left out, because one is being captured"
                                        : ": a stream is being captured";
  if (rung.rung == "mesh")
    outcome += ", or code may reach the memory without a call that cuwarden sees";
  return outcome;
}

// "synchronise 2.0 s (timed out) · reclaim torch 1.2 ms (no memory) · pool (nothing to do)": what
// was tried at the first refusal.
std::string attempts_of(const IndexedReport& report, const model::Incident& incident) {
  std::string text;
  for (const auto& rung : report->rungs) {
    const std::string outcome = printable(rung.outcome);
    if (rung.incident != incident.id) continue;
    const bool took_time = !outcome.starts_with("nothing_") || outcome == "nothing_gained";
    const bool is_timed = rung.duration_ns.value_or(0) != 0 && took_time;
    text += (text.empty() ? "" : " · ") + printable(rung.rung) +
            (rung.reclaimer ? " " + text_or(rung.reclaimer, "") : "") +
            (is_timed ? " " + human_time(rung.duration_ns.value_or(0)) : "") + " (" +
            outcome_of(rung) + ")";
  }
  return text;
}

// Returns the setting as it was in the process, such as "CUWARDEN_WAIT=0".
std::string setting_of(const IndexedReport& report, const std::string& name) {
  for (const auto& setting : report->settings)
    if (setting.name == name) return printable(name) + "=" + text_or(setting.value, "");
  return "turned off by " + printable(name);
}

// Returns the reason for which the rung was left out, in words. A reason that this version does not
// know is shown by its name.
std::string reason_of(const IndexedReport& report, const model::RungLeftOut& rung) {
  constexpr std::pair<std::string_view, std::string_view> reasons[] = {
      {"allocator_asks_again", "the allocator empties its own cache first, and asks again"},
      {"larger_than_device", "the request is larger than the device"},
      {"small", "requests of 1 MiB or less are not spilled"},
      {"own_memory", "the request does not fit beside this process's own memory"},
      {"much_is_free", "more than 2 GiB were free"},
      {"in_vain_before", "in vain shortly before"},
      {"host_memory", "the request was for host memory"},
      {"other_device", "the device was not that of the current context"},
      {"drivers_memory", "only the driver can serve this kind of memory"},
      {"no_allocation", "the call is no allocation"},
      {"memory_pool", "stream-ordered memory of this memory pool or context cannot be spilled"},
      {"not_supported", "not possible with this driver or program"},
      {"confined_thread", "a seccomp filter confined the thread"},
      {"in_reclaimer", "a reclaimer made the request"},
      {"compute_mode", "the device's compute mode refused the request"},
      {"not_repeated", "cuwarden does not repeat calls of this function"},
      {"page_cache", "the host's page cache, not another process, has the memory"}};
  if (rung.setting) return setting_of(report, *rung.setting);
  if (rung.reason == "nothing_there")
    return rung.rung == "reclaim" ? "no reclaimer is registered"
                                  : "cuwarden's pool has held no memory";
  for (const auto& [name, words] : reasons)
    if (name == rung.reason) return std::string(words);
  return with_blanks(printable(rung.reason));
}

// The rungs that were left out for one reason.
struct LeftOutTogether {
  std::string reason, rungs;  // in words; names, separated by commas
};

std::vector<LeftOutTogether> left_out_of(const IndexedReport& report,
                                         const model::Incident& incident) {
  std::vector<LeftOutTogether> all;
  for (const auto& rung : report->rungs_left_out) {
    if (rung.incident != incident.id) continue;
    std::string reason = reason_of(report, rung);
    const auto known = std::ranges::find(all, reason, &LeftOutTogether::reason);
    if (known == all.end())
      all.push_back({std::move(reason), printable(rung.rung)});
    else
      known->rungs += ", " + printable(rung.rung);
  }
  return all;
}

}  // namespace

void add_rungs(const IndexedReport& report, const model::Incident& incident, const Style& style,
               std::string& text) {
  const std::string which = incident.repeats.value_or(0) > 0 ? " for the first: " : ": ";
  const std::string attempts = attempts_of(report, incident);
  if (!attempts.empty()) text += style.dim("  tried" + which + attempts) + "\n";
  const std::vector<LeftOutTogether> left_out = left_out_of(report, incident);
  if (left_out.empty()) return;
  if (attempts.empty() && left_out.size() == 1) {
    text += style.dim("  nothing was tried" + which + left_out.front().reason) + "\n";
    return;
  }
  std::string list;
  for (const auto& [reason, rungs] : left_out)
    list += (list.empty() ? "" : " · ") + rungs + " (" + reason + ")";
  text += style.dim("  not tried" + which + list) + "\n";
}

}  // namespace cuwarden
