// A running process that `cuwarden top` reads now and then.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "reporters/model/values.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/top/recent_rates.hpp"
#include "tools/cuwarden/top/top_answer.hpp"
#include "tools/cuwarden/top/top_growth.hpp"
#include "tools/cuwarden/top/top_names.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// A process whose ledger `cuwarden top` reads now and then, with the last samples and the names of
// its call sites.
class Watched {
 public:
  // `pid`: id of the running process in the pid namespace of this command. `LedgerFile`: the
  // process's ledger; not null.
  Watched(pid_t pid, std::unique_ptr<LedgerFile>);

  // Reads the process's present numbers from its ledger (a sample), and adds them to recent(). Does
  // nothing and returns false once the process has ended; the first call reads in any case.
  bool sample();
  // Finds the call stacks whose memory keeps growing (GrowingGroups::look()), unless the process
  // has ended.
  void look_for_growth();
  // Returns the process with its samples, for the functions that make rows. The result points into
  // this object. There must have been a sample.
  WatchedProcess view() const;
  // Returns the refused requests of the process that cuwarden still tries to serve.
  // `waits_for_names`: true: waits until functions and lines of their call sites are looked up;
  // false: takes the best names so far. `where`: the member of CallSiteName from which
  // WaitingRow::where is set.
  std::vector<WaitingRow> waiting(bool waits_for_names, std::string CallSiteName::*where);
  // Returns the names of the process's call sites, which this object owns. The first call starts
  // the thread that looks them up, and throws std::system_error if that fails.
  CallSiteNames& names();

  bool ended() const { return ended_; }  // true once the process was found to have ended
  // The samples of the process from about the last ten seconds.
  const Recent& recent() const { return recent_; }
  // Returns the reader of the process's ledger.
  const ledger::Reader& reader() const { return file_->reader(); }

 private:
  pid_t pid_;                             // id of the process in the pid namespace of this command
  std::shared_ptr<LedgerFile> file_;      // the process's ledger; never null
  std::string user_;                      // user as whom the process runs; empty: unknown
  model::Figure rank_;                    // rank of the process in its job, from 0; null: unknown
  Recent recent_;                         // samples of about the last ten seconds
  GrowingGroups growing_;                 // call stacks whose memory keeps growing
  std::unique_ptr<CallSiteNames> names_;  // names of call sites; null until names() is called
  bool ended_ = false;                    // true once the process was found to have ended
};

}  // namespace cuwarden
