#include "tools/cuwarden/top/once.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "reporters/files/output.hpp"
#include "reporters/json/json_stream.hpp"
#include "reporters/model/type_descriptions.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/ledgers/running_processes.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/terminal.hpp"
#include "tools/cuwarden/top/once_text.hpp"
#include "tools/cuwarden/top/top_answer.hpp"
#include "tools/cuwarden/top/watched.hpp"

namespace cuwarden {
namespace {

constexpr auto once_pause = std::chrono::milliseconds(500);  // between the two samples of --once
constexpr std::size_t once_rows = 50;

using WatchedProcesses = std::map<pid_t, Watched>;

// Returns all running processes that have a ledger.
WatchedProcesses all_processes() {
  WatchedProcesses processes;
  for (const pid_t pid : all_pids()) {
    LiveLedger live = ledger_of(pid);
    if (live.file) processes.emplace(pid, Watched(pid, std::move(live.file)));
  }
  return processes;
}

// Takes two samples of each process, so that changes are known. Removes processes that end between
// them, unless `keeps_ended` is true.
void sample_twice(WatchedProcesses& processes, bool keeps_ended) {
  for (auto& [pid, watched] : processes) watched.sample();
  std::this_thread::sleep_for(once_pause);
  for (auto process = processes.begin(); process != processes.end();) {
    const bool runs = process->second.sample();
    process->second.look_for_growth();
    process = runs || keeps_ended ? std::next(process) : processes.erase(process);
  }
}

// Returns the rows of the processes. `where`: form in which lines of code are named.
TopAnswer answer_about(WatchedProcesses& processes, std::string CallSiteName::*where) {
  TopAnswer answer = new_answer();
  for (auto& [pid, watched] : processes) {
    add_process(watched.view(), answer);
    for (WaitingRow& row : watched.waiting(true, where)) answer.waiting.push_back(std::move(row));
  }
  return answer;
}

// Adds the rows of the process's call stacks, of which the first `named` have names. `where`: form
// in which lines of code are named.
void add_stacks(Watched& watched, std::size_t named, std::string CallSiteName::*where,
                TopAnswer& answer) {
  const std::vector<GroupSample> groups = groups_by_bytes(watched.recent());
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < std::min(named, groups.size()); ++i) ids.push_back(groups[i].id);
  watched.names().want(ids);
  watched.names().wait();
  for (const GroupSample& group : groups) {
    StackRow& row = answer.stacks.emplace_back(stack_row(watched.view(), group));
    const CallSiteName name = watched.names().get(group.id);
    row.api = model::text_or_null(name.api);
    row.where = model::text_or_null(name.*where);
  }
}

// Writes the rows as one JSON object, which top.schema.json describes. `with_stacks`: if false, the
// object has no member "stacks".
void write_json(const TopAnswer& answer, bool with_stacks, Output& output) {
  JsonStream json(output);
  model::AnyValue::of(answer).each_field([&](const model::Field& field, model::AnyValue part) {
    if (field.name != "stacks" || with_stacks) json.part(field.name, part);
  });
  json.finish();
}

// Prints the processes once, as text or JSON. `of_one`: true if there is one, whose call stacks are
// printed, too.
void print_once(WatchedProcesses processes, bool of_one, bool json) {
  sample_twice(processes, of_one);
  // Text names a line of code as the live view and reports do: "a.cpp:7 in f". JSON keeps the form
  // "f  a.cpp:7".
  const auto where = json ? &CallSiteName::where : &CallSiteName::location;
  TopAnswer answer = answer_about(processes, where);
  if (of_one)
    add_stacks(processes.begin()->second, json ? std::size_t{0} - 1 : once_rows, where, answer);
  if (json) {
    const auto output = std::make_unique<Output>(STDOUT_FILENO);
    write_json(answer, of_one, *output);
    if (const int error = output->finish()) output_failed(error);
    return;
  }
  const ViewForm form{once_rows, wants_colour(STDOUT_FILENO), columns_for(STDOUT_FILENO)};
  print(STDOUT_FILENO, of_one ? process_view(answer, form) : processes_view(answer, form));
}

}  // namespace

void print_process_once(pid_t pid, std::unique_ptr<LedgerFile> ledger, bool json) {
  WatchedProcesses one;
  one.emplace(pid, Watched(pid, std::move(ledger)));
  print_once(std::move(one), true, json);
}

void print_processes_once(bool json) { print_once(all_processes(), false, json); }

}  // namespace cuwarden
