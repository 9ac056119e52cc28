#include "shim/process/incident_explanations.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "reporters/verdicts/verdicts.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "shim/interpose/caller_tables.hpp"
#include "shim/probes/incident_facts.hpp"
#include "shim/process/reports.hpp"
#include "shim/process/seccomp_watch.hpp"
#include "shim/process/stack_room.hpp"
#include "shim/python/interpreter_calls.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

// Most call sites whose incidents are explained. Each explanation takes milliseconds, and further
// ones do not help a user.
constexpr std::uint32_t most_explained = 64;
// Longest time for all explanations together, however slow the driver and the disk are.
constexpr std::uint64_t longest_explaining_ns = 2'000'000'000;

std::optional<ledger::Reader> live_tables(const ledger::Writer& ledger) noexcept {
  ledger::ReadError error;
  return ledger::Reader::open(ledger.bytes(), error);
}

// Returns a line such as "cudaMalloc of 10.7 GiB (GPU 0) failed: 13.8 GiB are the unused parts of
// slabs that are still partly used (slab_fragmentation); report: /tmp/app.json". `report`: path of
// the report; empty: none was written.
std::string line_about(const ledger::Reader& live, const rescue::Incident& incident,
                       const Judgement& judgement, const std::string& report) {
  const auto hook = live.hook(incident.request.api.value);
  std::string line(hook ? hook->name : "a request");
  if (incident.request.bytes != 0) line += " of " + human_bytes(incident.request.bytes);
  if (incident.request.device != no_device)
    line += " (GPU " + std::to_string(incident.request.device.value) + ")";
  line += " failed";
  // An advice has the form "cause: remedy". The report has both.
  const std::string cause = judgement.advice.substr(0, judgement.advice.find(": "));
  line += cause.empty() ? ": " : ": " + cause + " (";
  line += verdict_name(judgement.verdict);
  if (!cause.empty()) line += ")";
  if (!report.empty()) line += "; report: " + report;
  return line;
}

}  // namespace

void IncidentExplanations::begin(ledger::Writer& ledger, tracking::CallSites& sites) noexcept {
  ledger_ = &ledger;
  sites_ = &sites;
  explained_.store(0, std::memory_order_relaxed);
  spent_ns_.store(0, std::memory_order_relaxed);
  warned_.store(0, std::memory_order_relaxed);
  // The thread that used the line in a forked child's parent is not in the child.
  kept_.is_in_use.clear();
  kept_.incident.store(0, std::memory_order_relaxed);
}

// Explanations stop once they have taken their time, so that a program with many incidents is not
// held up.
template <class Work>
void IncidentExplanations::within_the_budget(const Work& work) {
  if (spent_ns_.load(std::memory_order_relaxed) > longest_explaining_ns) return;
  const std::uint64_t begun_ns = ledger_->time.now_ns();
  work();
  spent_ns_.fetch_add(ledger_->time.now_ns() - begun_ns, std::memory_order_relaxed);
}

void IncidentExplanations::add_facts(rescue::Incident& incident) {
  ledger_->set_versions(0, runtime_version());
  if (explained_.fetch_add(1, std::memory_order_relaxed) >= most_explained) return;
  within_the_budget([&] {
    if (const auto live = live_tables(*ledger_)) add_incident_facts(*ledger_, *live, incident);
  });
}

void IncidentExplanations::keep(const rescue::Incident& incident, std::uint32_t verdict,
                                std::string_view line) noexcept {
  // Another thread's line is as good.
  if (kept_.is_in_use.test_and_set(std::memory_order_acquire)) return;
  const std::size_t length = std::min(line.size(), sizeof kept_.text - 1);
  std::memcpy(kept_.text, line.data(), length);
  kept_.text[length] = '\0';
  kept_.verdict = verdict;
  kept_.incident.store(incident.id.value, std::memory_order_relaxed);
  kept_.is_in_use.clear(std::memory_order_release);
}

void IncidentExplanations::warn_once(std::uint32_t verdict, std::string_view line) noexcept {
  const std::uint32_t bit = 1u << verdict;
  if ((warned_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) log_warn(line);
}

void IncidentExplanations::failed_again(IncidentId id) noexcept {
  if (kept_.incident.load(std::memory_order_relaxed) != id.value || is_confined_unnoticed()) return;
  const Uncancelled whole;
  if (kept_.is_in_use.test_and_set(std::memory_order_acquire)) return;
  if (kept_.incident.exchange(0, std::memory_order_relaxed) == id.value)
    warn_once(kept_.verdict, kept_.text);
  kept_.is_in_use.clear(std::memory_order_release);
}

void IncidentExplanations::tell_verdict(const rescue::Incident& incident, rescue::Outcome outcome) {
  if (explained_.load(std::memory_order_relaxed) > most_explained) return;
  within_the_budget([&] {
    const auto live = live_tables(*ledger_);
    if (!live) return;
    StackModules modules(*live);
    const auto given = case_of(*live, incident.group, incident.facts, incident.holdings.all(),
                               incident.others, modules);
    if (!given) return;
    const Judgement judgement = judge(*given);
    if (outcome == rescue::Outcome::served)
      return log_info(formatted("a request was rescued: {}", verdict_name(judgement.verdict)));
    log_info(formatted("a request was refused: {}; {}", verdict_name(judgement.verdict),
                       judgement.advice));
    const auto verdict = static_cast<std::uint32_t>(judgement.verdict);
    const std::string path = write_incident_report(*ledger_, *live, verdict);
    const std::string line = line_about(*live, incident, judgement, path);
    if (outcome == rescue::Outcome::failed)
      warn_once(verdict, line);
    else
      keep(incident, verdict, line);
  });
}

// If the shim has no stack of its own, the report has only the driver's figures.
void IncidentExplanations::explain(rescue::Incident& incident) noexcept {
  if (is_confined_unnoticed()) return;
  const Uncancelled whole;
  struct Task {
    IncidentExplanations& self;
    rescue::Incident& incident;
  } task{*this, incident};
  call_with_room(
      *sites_,
      [](void* given) {
        const Task& asked = *static_cast<Task*>(given);
        try {
          asked.self.add_facts(asked.incident);
        } catch (...) {
          // Without memory the facts stay as they are, and the report at the end judges
          // by them.
        }
      },
      &task);
}

void IncidentExplanations::settled(const rescue::Incident& incident,
                                   rescue::Outcome outcome) noexcept {
  if (is_confined_unnoticed()) return;
  interpreter_calls.ask(incident.id);
  const Uncancelled whole;
  struct Task {
    IncidentExplanations& self;
    const rescue::Incident& incident;
    rescue::Outcome outcome;
  } task{*this, incident, outcome};
  call_with_room(
      *sites_,
      [](void* given) {
        const Task& asked = *static_cast<Task*>(given);
        try {
          asked.self.tell_verdict(asked.incident, asked.outcome);
        } catch (...) {
          // Without memory the verdict is only in the report at the end.
        }
      },
      &task);
}

}  // namespace cuwarden::shim
