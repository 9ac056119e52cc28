#include "tools/cuwarden/top/watched.hpp"

#include <utility>

#include "reporters/tables/process_facts.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "tools/cuwarden/ledgers/running_processes.hpp"
#include "tools/cuwarden/top/top_waiting.hpp"

namespace cuwarden {

Watched::Watched(pid_t pid, std::unique_ptr<LedgerFile> file)
    : pid_(pid), file_(std::move(file)), user_(user_of(pid)), rank_(job_of(reader()).rank) {}

bool Watched::sample() {
  const auto stat = process_stat(pid_);
  if (!recent_.empty()) {
    ended_ = ended_ || !stat || stat->ended || stat->start_ticks != reader().process().start_ticks;
  }
  if (!ended_) recent_.add(take_sample(reader()));
  return !ended_;
}

void Watched::look_for_growth() {
  if (!ended_) growing_.look(reader(), time_ns_of(CLOCK_MONOTONIC));
}

WatchedProcess Watched::view() const {
  return {.pid = pid_,
          .reader = &reader(),
          .recent = &recent_,
          .growing = &growing_,
          .ended = ended_,
          .user = user_,
          .rank = rank_};
}

std::vector<WaitingRow> Watched::waiting(bool waits_for_names, std::string CallSiteName::*where) {
  std::vector<WaitingRow> rows;
  std::vector<WaitingRequest> requests = waiting_requests(view(), time_ns_of(CLOCK_MONOTONIC));
  if (requests.empty()) return rows;
  std::vector<std::uint32_t> groups;
  for (const WaitingRequest& request : requests) groups.push_back(request.group);
  names().want(groups);
  if (waits_for_names) names().wait();
  for (WaitingRequest& request : requests) {
    const CallSiteName name = names().get(request.group);
    request.row.api = model::text_or_null(name.api);
    request.row.where = model::text_or_null(name.*where);
    rows.push_back(std::move(request.row));
  }
  return rows;
}

CallSiteNames& Watched::names() {
  if (!names_) names_ = std::make_unique<CallSiteNames>(file_);
  return *names_;
}

}  // namespace cuwarden
