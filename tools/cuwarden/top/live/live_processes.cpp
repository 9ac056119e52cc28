#include "tools/cuwarden/top/live/live_processes.hpp"

#include <algorithm>
#include <string>

#include "reporters/tables/fragmentation_tables.hpp"
#include "reporters/tables/groups/library_reserves.hpp"
#include "runtime_hooks/core/clock.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/ledgers/running_processes.hpp"

namespace cuwarden {
namespace {

// Ended processes that stay in the list. Each keeps its ledger's memory.
constexpr std::size_t most_ended = 20;
// The account of a device takes at most this share of the command's time, as its reciprocal.
constexpr std::uint64_t account_share = 50;

std::string key_of_watched(const WatchedProcess& watched) {
  TopAnswer answer;
  add_process(watched, answer);
  return key_of(answer.processes.front());
}

}  // namespace

void LiveProcesses::add(pid_t pid, std::unique_ptr<LedgerFile> file) {
  Process process{Watched(pid, std::move(file))};
  process.watched.sample();
  processes_.insert_or_assign(pid, std::move(process));
}

void LiveProcesses::search(const std::string& kept) {
  for (const pid_t pid : all_pids()) {
    const auto known = processes_.find(pid);
    if (known != processes_.end() &&
        (known->second.ended_ns == 0 || key_of_watched(known->second.watched.view()) == kept))
      continue;
    LiveLedger live = ledger_of(pid);
    if (live.file) add(pid, std::move(live.file));
  }
  std::vector<std::pair<std::uint64_t, pid_t>> ended;
  for (const auto& [pid, process] : processes_)
    if (process.ended_ns != 0 && key_of_watched(process.watched.view()) != kept)
      ended.emplace_back(process.ended_ns, pid);
  std::ranges::sort(ended);
  for (std::size_t i = 0; i + most_ended < ended.size(); ++i) processes_.erase(ended[i].second);
}

void LiveProcesses::leave(const std::string& key) {
  std::erase_if(processes_, [&](const auto& entry) {
    return entry.second.ended_ns != 0 && key_of_watched(entry.second.watched.view()) == key;
  });
}

void LiveProcesses::sample() {
  for (auto& [pid, process] : processes_) {
    if (!process.watched.sample()) {
      if (process.ended_ns == 0) process.ended_ns = time_ns_of(CLOCK_MONOTONIC);
      continue;
    }
    const Sample& sample = process.watched.recent().newest();
    const std::uint64_t start_ns = process.watched.reader().process().start_monotonic_ns;
    const std::uint64_t now_ns = sample.time_ns - std::min(sample.time_ns, start_ns);
    for (const ledger::SeriesView& series : sample.series)
      process.histories[{series.kind, series.device.value}].add(now_ns, series.live_bytes);
  }
}

LiveProcesses::Process* LiveProcesses::opened_in(const LiveState& state) {
  for (auto& [pid, process] : processes_)
    if (key_of_watched(process.watched.view()) == state.process) return &process;
  return nullptr;
}

LiveProcess LiveProcesses::read(Process& process) {
  TopAnswer answer;
  add_process(process.watched.view(), answer);
  LiveProcess live;
  live.row = std::move(answer.processes.front());
  live.devices = std::move(answer.devices);
  live.waiting = process.watched.waiting(false, &CallSiteName::location);
  const std::vector<ledger::SeriesView>& all = process.watched.recent().newest().series;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Trend trend = process.histories[{all[i].kind, all[i].device.value}].trend(
        live.row.running_ns.value_or(0), all[i]);
    add_trend(trend, live.trend);
    live.totals.push_back({std::move(answer.totals[i]), std::move(trend)});
  }
  return live;
}

void LiveProcesses::read_accounts(Process& process) {
  const std::uint64_t now_ns = time_ns_of(CLOCK_MONOTONIC);
  if (now_ns < process.next_account_ns || process.ended_ns != 0) return;
  process.accounts.clear();
  const ledger::Reader& reader = process.watched.reader();
  put_accounts(reader, process.watched.recent().newest().series, find_fragmentation(reader),
               live_implicit_of_libraries(reader), {},
               [&](const model::AccountItem& item) { process.accounts.push_back(item); });
  process.next_account_ns = now_ns + (time_ns_of(CLOCK_MONOTONIC) - now_ns) * account_share;
}

void LiveProcesses::read_stacks(Process& process, LiveData& data) {
  process.watched.look_for_growth();
  read_accounts(process);
  data.accounts = process.accounts;
  for (const GroupSample& group : groups_by_bytes(process.watched.recent()))
    data.stacks.push_back({group.id, stack_row(process.watched.view(), group)});
  put_names(process, data);
}

void LiveProcesses::put_names(Process& process, LiveData& data) {
  CallSiteNames& names = process.watched.names();
  process.names_seen = names.revision();
  for (LiveStack& stack : data.stacks) {
    CallSiteName name = names.get(stack.group);
    stack.row.api = model::text_or_null(name.api);
    stack.location = std::move(name.location);
    stack.module = std::move(name.module);
  }
}

void LiveProcesses::read(const LiveState& state, LiveData& data) {
  data = {};
  for (auto& [pid, process] : processes_) data.processes.push_back(read(process));
  if (state.page == LivePage::processes) return;
  Process* const process = opened_in(state);
  if (process == nullptr) return;
  read_stacks(*process, data);
  if (state.page == LivePage::stack)
    data.whole_stack = process->watched.names().whole_stack(state.stack);
}

bool LiveProcesses::name(const LiveState& state, const std::vector<std::uint32_t>& groups, bool all,
                         LiveData& data) {
  Process* const process = state.page == LivePage::processes ? nullptr : opened_in(state);
  if (process == nullptr) return false;
  CallSiteNames& names = process->watched.names();
  names.want(groups);
  if (all) {
    std::vector<std::uint32_t> ids;
    for (const LiveStack& stack : data.stacks) ids.push_back(stack.group);
    names.want_later(ids);
  }
  if (names.revision() == process->names_seen) return false;
  put_names(*process, data);
  if (state.page == LivePage::stack) data.whole_stack = names.whole_stack(state.stack);
  return true;
}

bool LiveProcesses::is_looking_up_names(const LiveState& state) {
  if (state.page == LivePage::processes) return false;
  Process* const process = opened_in(state);
  return process != nullptr && !process->watched.names().are_known();
}

}  // namespace cuwarden
