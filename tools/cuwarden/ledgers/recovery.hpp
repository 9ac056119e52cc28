// Makes the report of a process that died without writing one, from the ledger it left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/cuwarden/ledgers/acting_as.hpp"

namespace cuwarden {

enum class RecoveryOutcome : std::uint8_t {
  // A report was made. The ledger is removed, or set aside if it is damaged.
  recovered,
  // The process had written its report. The ledger is removed.
  had_report,
  // The process still lives. Nothing was done.
  running,
  // Another cuwarden is at work on the ledger, or was. Nothing was done.
  busy,
  // This process cannot see whether the recorded process still lives. Nothing was done.
  out_of_sight,
  // The ledger belongs to another user, and this process is not root. Nothing was done.
  other_user,
  // CUWARDEN_REPORT_IF asks for no report of this process. The ledger is removed.
  not_wanted,
  // The process died before it recorded anything. The ledger is removed.
  nothing_in_it,
  // No report could be made. The ledger stays.
  failed,
  // The owner's other ledgers have taken all the time of one user. Nothing was done.
  no_time,
};

struct Recovery {
  RecoveryOutcome outcome = RecoveryOutcome::failed;
  std::string report{};  // the report's path, after recovered and had_report
  std::string text{};    // one line for the user, without the ledger's path
  std::string kept{};    // path of a damaged ledger after recovered; empty if it was not damaged
  // The user with whose rights the report was made; null if with this process's own.
  std::optional<uid_t> owner{};
  // The report's text, if RecoveryRequest::wants_content and `owner` is set. It was read with the
  // owner's rights, since the report's path is the owner's choice and may lead anywhere. Empty if
  // it could not be read.
  std::string content{};
};

struct RecoveryRequest {
  // The process for which the caller has called wait(), and the signal that killed it; 0 if none.
  pid_t waited_for = 0;
  std::optional<int> signal{};
  // True if the path in CUWARDEN_REPORT certainly leads to the same folder here as in the process;
  // `run` knows this, since it started the process. Otherwise, if the process ran on another host
  // or in another container, the report goes beside the ledger.
  bool path_is_known = false;
  bool wants_content = false;  // fill Recovery::content
  // True if a person asked for the report of this one ledger: then CUWARDEN_REPORT_IF does not
  // count.
  bool always = false;
  // Absolute path of the report, or of a folder for it; empty: the path to which the process would
  // have written it. If set, the report is always made, and no older one is removed.
  std::string output{};
};

// Usual limit of the time for one ledger of another user; longer than the largest report takes.
inline constexpr std::chrono::minutes usual_time_for_a_ledger{2};

// Makes the report of a ledger with this process's own rights. So it leaves a ledger of another
// user alone: this process must not do what another user's file says.
Recovery recover(const std::string& ledger_path, const RecoveryRequest&);

// Makes the report of a ledger that may belong to another user, if this process is root. A child
// with the owner's rights does the work: it reads and writes only files that the owner could, and
// the report belongs to the owner. If the owner stops the child, or if the work takes too long,
// there is no report, and other ledgers are not held up.
Recovery recover_as_owner(const std::string& ledger_path, const RecoveryRequest&, TimeForUsers&);

}  // namespace cuwarden
