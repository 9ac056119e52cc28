#include "reporters/text/headline/headline.hpp"

#include <algorithm>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reporters/text/elements/leak_check.hpp"
#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/moments.hpp"
#include "reporters/text/elements/process_ending.hpp"
#include "reporters/text/elements/ranked_leaks.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/text/headline/leak_headline.hpp"
#include "reporters/text/headline/top_holders.hpp"
#include "reporters/verdicts/shortage.hpp"
#include "reporters/verdicts/verdicts.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

// Splits an advice of the form "cause: remedy". An advice without a colon is a cause.
void split(const std::string& advice, Headline& headline) {
  constexpr std::string_view between = ": ";
  const std::size_t end = advice.find(between);
  headline.cause = advice.substr(0, end);
  if (end != advice.npos) headline.advice = advice.substr(end + between.size());
}

bool is_host_memory(const model::LeakGroup& group) {
  return group.kind == "pinned" || group.kind == "registered" || group.kind == "managed";
}

// Returns the headline about a process that the kernel's OOM killer may have ended: it died unseen
// or by SIGKILL, and its cgroup counts kills. Null otherwise.
std::optional<Headline> oom_killer(const IndexedReport& report, const Style& style, RowDone done) {
  const auto& process = report->process;
  const model::MemoryCgroup cgroup = report->memory_cgroup.value_or(model::MemoryCgroup());
  const std::uint64_t kills = cgroup.oom_kills.value_or(0);
  const bool died_so = !process.end_reason || process.signal.value_or(0) == SIGKILL;
  // A cgroup that was far from its limit was not the reason.
  const std::uint64_t limit_bytes = cgroup.limit_bytes.value_or(0),
                      peak_bytes = cgroup.peak_bytes.value_or(limit_bytes);
  if (kills == 0 || !died_so || peak_bytes < limit_bytes - limit_bytes / 10) return std::nullopt;
  Headline headline{.gravity = Gravity::alarm, .title = "KILLED BY THE OOM KILLER"};
  headline.sentence = " " + moment_of(report, process.end_ns.value_or(0)) + ": ";
  std::uint64_t host_bytes = 0;
  std::vector<model::LeakGroup> groups = merged_leaks(report, style, done);
  std::erase_if(groups, [](const auto& group) { return !is_host_memory(group); });
  for (const auto& group : groups) host_bytes += group.bytes.value_or(0);
  if (limit_bytes != 0) {
    headline.sentence += "the cgroup's limit is " + human_bytes(limit_bytes);
    if (cgroup.peak_bytes) headline.sentence += ", its peak was " + human_bytes(peak_bytes);
    headline.advice = "pin less host memory, or raise the limit of the cgroup (container, job)";
  } else {
    headline.sentence += "the machine ran out of memory, since the cgroup has no limit";
    headline.advice = "pin less host memory, or run on a machine with more";
  }
  if (!groups.empty()) {
    const auto most = std::ranges::max_element(
        groups, {}, [](const auto& group) { return group.bytes.value_or(0); });
    headline.cause = "the process held " + human_bytes(host_bytes) +
                     " of pinned host memory, most of it " +
                     held_words(report, {*most, {most->stack}});
  } else {
    headline.cause = "the process held no pinned host memory: other memory filled the cgroup";
    headline.advice.clear();
  }
  if (kills > 1)
    headline.cause += "; " + human_count(kills) + " processes of the cgroup were killed";
  return headline;
}

// Returns the incident that failed last; null if none failed.
const model::Incident* last_failed(const IndexedReport& report) {
  const model::Incident* last = nullptr;
  for (const model::Incident& incident : report->incidents) {
    if (incident.outcome == "rescued" || incident.outcome == "recovered_by_caller") continue;
    if (last == nullptr || incident.last_ns.value_or(0) > last->last_ns.value_or(0))
      last = &incident;
  }
  return last;
}

// Returns advice about a process that died. `aborted`: true if it called abort(). `signal`: number
// of the signal that killed it; null: no signal was seen.
std::string advice_on_death(bool aborted, model::Figure signal) {
  if (aborted || signal == SIGABRT)
    return "read what the program printed last, such as a failed assertion or an uncaught "
           "exception; a debugger shows the call stack";
  if (!signal)
    return "look for its exit status in the shell or the scheduler, and for its pid in the "
           "kernel's "
           "log (dmesg)";
  switch (*signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGSYS:
      return "run the program in a debugger, which shows the line that crashed; host code that "
             "reads or writes device memory crashes so, too";
    case SIGINT:
    case SIGQUIT:
    case SIGHUP:
      return "nothing, if a person at the terminal stopped it";
    default:
      return "find out who sent the signal: a scheduler at its time limit, the system, or a person";
  }
}

// Returns the headline about a process that a signal or an abort has ended; null otherwise.
std::optional<Headline> killed(const IndexedReport& report, const Style& style, RowDone done) {
  const auto& process = report->process;
  const bool aborted = process.end_reason == "abort";
  if (!aborted && process.end_reason != "signal" && process.end_reason) return std::nullopt;
  Headline headline{.gravity = Gravity::alarm,
                    .title = aborted              ? "ABORTED"
                             : process.end_reason ? "KILLED"
                                                  : "ENDED UNSEEN"};
  constexpr std::string_view killed_by = "killed ";
  const std::string ending =
      process_ending(process.end_reason, process.exit_status, process.signal);
  if (ending.starts_with(killed_by)) headline.sentence = " " + ending.substr(killed_by.size());
  headline.sentence += " " + moment_of(report, process.end_ns.value_or(0));
  if (const auto line = first_leak(report, style, done)) {
    headline.sentence += ", when " + human_bytes(report->leaks.bytes.value_or(0)) + " in " +
                         allocations(report->leaks.count.value_or(0)) + " were live";
    if (rank_of_leak(line->sum) < 3)
      headline.cause = "the memory that grew: " + held_words(report, *line);
  }
  headline.advice = advice_on_death(aborted, process.signal);
  if (report->incidents.empty()) headline.advice += "; no request for memory had failed";
  return headline;
}

// Returns the headline about requests that were rescued; null if there were none.
std::optional<Headline> rescued(const IndexedReport& report, const Style&, RowDone) {
  std::uint64_t count = 0, failed = 0;
  const model::Incident* first = nullptr;
  for (const model::Incident& incident : report->incidents) {
    count += incident.rescued_count.value_or(0);
    failed += incident.failed_count.value_or(0);
    if (incident.outcome == "rescued" && first == nullptr) first = &incident;
  }
  if (first == nullptr || count == 0) return std::nullopt;
  Headline headline{.gravity = Gravity::caution, .title = "RESCUED"};
  headline.sentence =
      ": cuwarden served " + human_count(count) +
      (count == 1 ? " request that the driver had" : " requests that the driver had") +
      " refused for lack of memory" + (failed == 0 ? "; the program saw no failure" : "");
  Headline remedy;
  split(text_or(first->advice, ""), remedy);
  headline.cause = remedy.cause;
  headline.advice = remedy.advice.empty() ? std::string("nothing, since the program got its memory")
                                          : "nothing; to need no rescue, " + remedy.advice;
  return headline;
}

bool anything_recorded(const IndexedReport& report) {
  return std::ranges::any_of(report->totals,
                             [](const auto& row) { return row.allocations.value_or(0) > 0; });
}

// Returns words for the failures of an incident's requests. `seen`: number of failures that the
// program saw. `all`: number of refusals by the driver, those included that cuwarden rescued.
std::string count_words(std::uint64_t seen, std::uint64_t all) {
  const std::uint64_t told = seen == 0 ? all : seen;
  return (seen == 0 ? std::string(" was refused") : std::string(" failed")) +
         (told > 1 ? " " + human_count(told) + " times from then on" : "");
}

// Returns words for the incident's requests that cuwarden served, if others of them failed;
// otherwise an empty text. `seen`: number of failures that the program saw.
std::string rescued_words(std::uint64_t seen, std::uint64_t rescued) {
  if (seen == 0 || rescued == 0) return "";
  return "; " + human_count(rescued) + (rescued == 1 ? " more was served" : " more were served");
}

// Returns words for the bytes that the request takes of the device, if only rounding makes them
// more than `free_bytes`; otherwise an empty text.
std::string rounding_words(const model::Incident& incident, std::uint64_t free_bytes) {
  const std::uint64_t asked = *incident.bytes;
  const std::uint64_t taken = taken_on_device(asked, incident.kind == "stream_ordered");
  if (asked > free_bytes || taken <= free_bytes) return "";
  return " (the driver rounds it up by " + human_bytes(taken - asked) + ")";
}

// Returns words for the free memory of the device at the refusal, if that is why the request
// failed; otherwise an empty text.
std::string free_words(const IndexedReport& report, const model::Incident& incident) {
  if (!incident.device || !incident.bytes) return "";
  for (const model::IncidentFact& fact : report->incident_facts)
    if (fact.incident == incident.id && fact.fact == "free_bytes" && fact.value)
      return " with " + human_bytes(*fact.value) + " free" + rounding_words(incident, *fact.value);
  return "";
}

// Adds to the cause the line of the program whose allocations matter most, if the process itself
// holds the memory.
void add_holder(const IndexedReport& report, const model::Incident& incident, const Style& style,
                Headline& headline) {
  const NamedHolders named = named_holders(incident.verdict);
  const bool is_own = named == NamedHolders::own || named == NamedHolders::own_in_slabs;
  const std::vector<model::IncidentHolder> holders = top_holders(report, incident, style);
  if (!is_own || holders.empty() || headline.cause.empty()) return;
  const model::IncidentHolder& top = holders.front();
  const std::string location = at_calling_location(report, top.stack);
  if (location.empty()) return;
  headline.cause += "; " + counted(top.count.value_or(0), top.kind) + " (" +
                    human_bytes(top.bytes.value_or(0)) + " in all), made" + location;
  if (holders_lock_slabs(incident, holders))
    headline.cause += ", keep " + human_bytes(top.slab_locked_bytes.value_or(0)) + " locked";
  else if (grows(top))
    headline.cause += ", and ever more";
}

}  // namespace

std::string request_words(const model::Incident& incident) {
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

Headline headline_of_incident(const IndexedReport& report, const model::Incident& incident,
                              const Style& style) {
  // A compute mode refuses contexts, however much is free.
  const bool lacked_memory = incident.result == "CUDA_ERROR_OUT_OF_MEMORY";
  Headline headline{.gravity = Gravity::alarm,
                    .title = lacked_memory ? "OUT OF MEMORY" : "REFUSED"};
  headline.incident = incident.id;
  const std::uint64_t all = incident.repeats.value_or(0) + 1;
  const std::uint64_t seen =
      incident.failed_count.value_or(all - std::min(all, incident.rescued_count.value_or(0)));
  headline.sentence = " " + moment_of(report, incident.time_ns.value_or(0)) + ": " +
                      request_words(incident) + count_words(seen, all) +
                      free_words(report, incident) + at_calling_location(report, incident.stack) +
                      rescued_words(seen, incident.rescued_count.value_or(0));
  split(text_or(incident.advice, ""), headline);
  add_holder(report, incident, style, headline);
  const std::string verdict = " (" + printable(incident.verdict) + ")";
  (headline.cause.empty() ? headline.sentence : headline.cause) += verdict;
  return headline;
}

void add_headline(const Headline& headline, const Style& style, std::string& text) {
  const std::string title = headline.gravity == Gravity::alarm     ? style.red(headline.title)
                            : headline.gravity == Gravity::caution ? style.yellow(headline.title)
                                                                   : style.green(headline.title);
  text += title + style.bold(headline.sentence) + "\n";
  if (!headline.cause.empty()) text += "  " + headline.cause + "\n";
  if (!headline.advice.empty()) text += "  " + style.bold("To do") + ": " + headline.advice + "\n";
}

Headline plain_headline(const IndexedReport& report) {
  const auto& leaks = report->leaks;
  const bool doubtful = lacks_records(report).has_value();
  Headline headline;
  if (doubtful) headline.gravity = Gravity::caution;
  if (!anything_recorded(report)) {
    headline.title = "nothing to judge";
    headline.sentence =
        doubtful ? ": no allocation is known, but records are missing (lines `incomplete`)"
                 : ": no allocation was recorded";
    return headline;
  }
  if (const std::uint64_t count = leaks.count.value_or(0)) {
    headline.gravity = was_running(report) ? Gravity::fine : Gravity::caution;
    headline.title = was_running(report) ? "STILL ALLOCATED" : "NOT FREED";
    headline.sentence = ": " + human_bytes(leaks.bytes.value_or(0)) + " in " + allocations(count) +
                        (was_running(report) ? "" : " at the end");
    const bool all_reachable =
        std::ranges::all_of(report->leak_groups, [](const model::LeakGroup& group) {
          return group.released_by || group.suppressed ||
                 group.reachable_count.value_or(0) >= group.count.value_or(0);
        });
    headline.sentence += "; " + words_of_no_growth(report) +
                         (all_reachable ? ", and pointers to all of it are left" : "");
    if (!was_running(report))
      headline.advice =
          "nothing, if the program needs the memory until its end; otherwise free it where it is "
          "needed no more";
    return headline;
  }
  headline.title = was_running(report) ? "nothing is allocated"
                   : doubtful ? "no leaks are known, but records are missing (lines `incomplete`)"
                              : "no leaks";
  headline.sentence =
      std::string(": every recorded allocation was freed") +
      (leaks.released_by_context_bytes.value_or(0) > 0 ? " or went with its context" : "") +
      (leaks.suppressed_bytes.value_or(0) > 0 ? " or is suppressed" : "");
  return headline;
}

Headline headline_of(const IndexedReport& report, const Style& style, RowDone done) {
  if (auto headline = oom_killer(report, style, done)) return *headline;
  const model::Incident* const incident = last_failed(report);
  // A process that was killed long after a failure was not killed for that.
  constexpr std::uint64_t long_ns = 10ull * 60 * 1'000'000'000;
  const std::uint64_t end_ns = report->process.end_ns.value_or(0);
  const bool is_long_ago =
      incident != nullptr && end_ns > incident->last_ns.value_or(end_ns) + long_ns;
  if (is_long_ago)
    if (auto headline = killed(report, style, done)) return *headline;
  if (incident != nullptr) return headline_of_incident(report, *incident, style);
  for (const auto& event : {killed, headline_of_leaks, rescued})
    if (auto headline = event(report, style, done)) return *headline;
  return plain_headline(report);
}

}  // namespace cuwarden
