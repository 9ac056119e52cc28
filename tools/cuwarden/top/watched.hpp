// A running process that `cuwarden top` reads now and then.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "reporters/model/values.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/top/top_answer.hpp"
#include "tools/cuwarden/top/top_growth.hpp"
#include "tools/cuwarden/top/top_names.hpp"
#include "tools/cuwarden/top/top_sample.hpp"

namespace cuwarden {

// A running process with its ledger, the last samples of it, and the names of its call sites.
class Watched {
 public:
  // `pid`: the process, in the pid namespace of this command. LedgerFile: its ledger; not null.
  Watched(pid_t pid, std::unique_ptr<LedgerFile>);

  // Takes a sample. Returns false once the process has ended; then the last sample stays.
  bool sample();
  // Finds the call stacks whose memory keeps growing (GrowingGroups::look()), unless the process
  // has ended.
  void look_for_growth();
  // Returns the process with its samples, for the functions that make rows. They belong to this
  // object. There must have been a sample.
  WatchedProcess view() const;
  // Returns the requests of the process that wait for memory, with the best names that are known of
  // their call sites. `waits_for_names`: true if these are to be looked up first. `where`: the form
  // of the call site's name.
  std::vector<WaitingRow> waiting(bool waits_for_names, std::string CallSiteName::*where);
  // Returns the names of the process's call sites, which this object owns. The first call starts
  // the thread that looks them up.
  CallSiteNames& names();

  bool ended() const { return ended_; }  // true once the process was found to have ended
  // The samples of about the last ten seconds.
  const Recent& recent() const { return recent_; }
  // Reads the process's ledger.
  const ledger::Reader& reader() const { return file_->reader(); }

 private:
  pid_t pid_;
  std::shared_ptr<LedgerFile> file_;
  std::string user_;    // user as whom the process runs; empty: unknown
  model::Figure rank_;  // rank of the process in its job; null: unknown
  Recent recent_;
  GrowingGroups growing_;
  std::unique_ptr<CallSiteNames> names_;  // null until names are wanted
  bool ended_ = false;
};

}  // namespace cuwarden
