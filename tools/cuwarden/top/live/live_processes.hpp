// The processes that the live view of `cuwarden top` shows, and all that it reads of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/top/live/live_data.hpp"
#include "tools/cuwarden/top/live/live_state.hpp"
#include "tools/cuwarden/top/live/trend.hpp"
#include "tools/cuwarden/top/watched.hpp"

namespace cuwarden {

// Reads the processes that the live view shows. A process that has ended keeps the numbers that
// were read last.
class LiveProcesses {
 public:
  // Adds a running process, and reads its numbers. `LedgerFile`: the process's ledger; not null.
  void add(pid_t, std::unique_ptr<LedgerFile>);
  // Adds all running processes that have a ledger and were not added before. If more than twenty
  // ended processes are there, removes those that ended first. `kept`: key (key_of()) of the
  // process that stays in any case.
  void search(const std::string& kept);
  // Removes the process with this key (key_of()) if it has ended. To be called when the user goes
  // back from the process's page of the live view to the list.
  void leave(const std::string& key);
  // Reads the present numbers (a sample) of each process that still runs.
  void sample();

  // Sets the data to all that the page LiveState::page shows.
  void read(const LiveState&, LiveData&);
  // Looks up names of call sites in the process that the user has opened, and puts new ones into
  // the data. May start the thread that looks names up, and then throw std::system_error. `groups`:
  // rows in the process's ledger of groups to look up. `all`: true: looks up those of all groups in
  // the data, too. Returns true if names in the data were set anew.
  bool name(const LiveState&, const std::vector<std::uint32_t>& groups, bool all, LiveData&);
  // True if names of call sites of the process that the user has opened are still being looked up.
  bool is_looking_up_names(const LiveState&);

 private:
  // A kind of memory, and the CUDA ordinal of its device; -1 for host memory.
  using SeriesKey = std::pair<Kind, std::int32_t>;
  // A process of the live view, with all that was read from its ledger.
  struct Process {
    Watched watched;  // reads the process, and has its samples
    // Live bytes of each kind of memory on each device over time.
    std::map<SeriesKey, History> histories{};
    // Time of CLOCK_MONOTONIC, in nanoseconds, before which `accounts` is not made anew.
    std::uint64_t next_account_ns = 0;
    // Parts of the used memory of the devices that the process has used.
    std::vector<model::AccountItem> accounts{};
    // Time of CLOCK_MONOTONIC, in nanoseconds, at which `cuwarden top` saw that the process had
    // ended; 0: the process runs.
    std::uint64_t ended_ns = 0;
    // CallSiteNames::revision() when names were last put into the data.
    std::uint64_t names_seen = 0;
  };
  using Processes = std::map<pid_t, Process>;

  // Returns the element of `processes_` whose key is LiveState::process: the process that the user
  // has opened. Null if the user has opened none, or if `processes_` no longer has it.
  Process* opened_in(const LiveState&);
  // Returns the numbers of the process that the live view shows.
  static LiveProcess read(Process&);
  // Finds the parts of the devices' used memory anew (Process::accounts). Does nothing if the
  // process has ended, or if this would take more than about a fiftieth of the command's time.
  static void read_accounts(Process&);
  // Puts the call stacks and the accounts of the process into the data.
  static void read_stacks(Process&, LiveData&);
  // Puts the names of call sites that are known so far into LiveData::stacks.
  static void put_names(Process&, LiveData&);

  Processes processes_;  // processes of the live view by pid
};

}  // namespace cuwarden
