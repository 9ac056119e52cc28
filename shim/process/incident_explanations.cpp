#include "shim/process/incident_explanations.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "reporters/verdicts/verdicts.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "shim/interpose/caller_tables.hpp"
#include "shim/probes/facts_outside_driver.hpp"
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
  return ledger::Reader::open(ledger.file.bytes(), error);
}

}  // namespace

void IncidentExplanations::begin(ledger::Writer& ledger, tracking::CallSites& sites) noexcept {
  ledger_ = &ledger;
  sites_ = &sites;
  explained_.store(0, std::memory_order_relaxed);
  spent_ns_.store(0, std::memory_order_relaxed);
  judged_.store(0, std::memory_order_relaxed);
  lines_.reset();
}

// Explanations stop once they have taken their time, so that a program with many incidents is not
// held up.
template <class Work>
void IncidentExplanations::within_the_budget(bool always, const Work& work) {
  if (!always && spent_ns_.load(std::memory_order_relaxed) > longest_explaining_ns) return;
  const std::uint64_t begun_ns = ledger_->time.now_ns();
  work();
  spent_ns_.fetch_add(ledger_->time.now_ns() - begun_ns, std::memory_order_relaxed);
}

void IncidentExplanations::add_facts(rescue::Incident& incident) {
  ledger_->set_versions(0, runtime_version());
  if (explained_.fetch_add(1, std::memory_order_relaxed) >= most_explained) return;
  within_the_budget(false, [&] {
    if (const auto live = live_tables(*ledger_)) add_incident_facts(*ledger_, *live, incident);
  });
}

void IncidentExplanations::failed_again(const rescue::Incident& failed, IncidentId id) noexcept {
  if (!is_confined_unnoticed()) lines_.failed_again(failed, id, ledger_->time.now_ns());
}

void IncidentExplanations::end() noexcept {
  if (ledger_ == nullptr) return;
  if (const auto live = live_tables(*ledger_)) lines_.end(*live);
}

void IncidentExplanations::tell_verdict(const rescue::Incident& incident, rescue::Outcome outcome) {
  // Requests that an allocator repeats may be many before one fails, of which the user must know.
  const bool always = judged_.fetch_add(1, std::memory_order_relaxed) < most_explained;
  within_the_budget(always, [&] { judge_and_tell(incident, outcome); });
}

void IncidentExplanations::judge_and_tell(const rescue::Incident& incident,
                                          rescue::Outcome outcome) {
  const auto live = live_tables(*ledger_);
  if (!live) return;
  StackModules modules(*live);
  const auto given = case_of(*live, incident.group, incident.facts, incident.holdings.all(),
                             incident.others, modules);
  if (!given) return;
  const Judgement judgement = judge(*given);
  const std::string_view name = verdict_name(judgement.verdict);
  if (outcome == rescue::Outcome::served)
    return log_info(formatted("a request was rescued: {}", name));
  log_info(formatted("a request was refused: {}; {}", name, judgement.advice));
  if (outcome == rescue::Outcome::failed) lines_.forget(incident);
  const auto verdict = static_cast<std::uint32_t>(judgement.verdict);
  // A line about the verdict names a report that tells of it.
  if (lines_.has_told(verdict)) return;
  const std::string report = write_incident_report(*ledger_, *live, verdict);
  // An advice has the form "cause: remedy". The report has both.
  std::string cause = judgement.advice.substr(0, judgement.advice.find(": "));
  cause += cause.empty() ? name : " (" + std::string(name) + ")";
  const auto hook = live->hook(incident.request.api.value);
  const FailureWords words{verdict, hook ? hook->name : std::string_view(), cause, report};
  if (outcome == rescue::Outcome::failed)
    lines_.tell(incident, words);
  else
    lines_.keep(incident, words, ledger_->time.now_ns());
}

// If the shim has no stack of its own, the report has only the driver's figures.
void IncidentExplanations::explain(rescue::Incident& incident) noexcept {
  if (is_confined_unnoticed()) return;
  const Uncancelled whole;
  call_with_room(*sites_, [&] {
    try {
      add_facts(incident);
    } catch (...) {
      // Without memory the facts stay as they are, and the report at the end judges by them.
    }
  });
}

void IncidentExplanations::settled(const rescue::Incident& incident,
                                   rescue::Outcome outcome) noexcept {
  if (is_confined_unnoticed()) return;
  interpreter_calls.ask(incident.id);
  const Uncancelled whole;
  call_with_room(*sites_, [&] {
    try {
      tell_verdict(incident, outcome);
    } catch (...) {
      // Without memory the verdict is only in the report at the end.
    }
  });
}

}  // namespace cuwarden::shim
