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

// Reads the processes that the live view shows. A process that ends stays, as it was last.
class LiveProcesses {
 public:
  // Adds a process. LedgerFile: its ledger; not null.
  void add(pid_t, std::unique_ptr<LedgerFile>);
  // Adds all running processes that have a ledger and are not known yet. Removes ended processes
  // if there are many; the one with the key `kept` stays (key_of()).
  void search(const std::string& kept);
  // Removes the process with this key (key_of()) if it has ended.
  void leave(const std::string& key);
  // Takes a sample of each process.
  void sample();

  // Reads all that the page of the state shows.
  void read(const LiveState&, LiveData&);
  // Asks for the names of the groups (rows in the ledger of the process that is open); `all`: true
  // asks for those of all groups. Returns true if names in the data have changed.
  bool name(const LiveState&, const std::vector<std::uint32_t>& groups, bool all, LiveData&);
  // True if more names will be known soon.
  bool is_looking_up_names(const LiveState&);

 private:
  // A kind of memory and the ordinal of its device.
  using SeriesKey = std::pair<Kind, std::int32_t>;
  struct Process {
    Watched watched;
    std::map<SeriesKey, History> histories{};
    // Value of CLOCK_MONOTONIC before which the device's account is not made anew, and the account.
    std::uint64_t next_account_ns = 0;
    std::vector<model::AccountItem> accounts{};
    std::uint64_t ended_ns = 0;  // value of CLOCK_MONOTONIC when the end was seen; 0: it runs
    // Number of call sites whose names were known when they were last put into the data.
    std::uint64_t names_seen = 0;
  };
  using Processes = std::map<pid_t, Process>;

  // Returns the process that is open; null if there is none.
  Process* opened_in(const LiveState&);
  static LiveProcess read(Process&);
  static void read_accounts(Process&);
  static void read_stacks(Process&, LiveData&);
  static void put_names(Process&, LiveData&);

  Processes processes_;
};

}  // namespace cuwarden
