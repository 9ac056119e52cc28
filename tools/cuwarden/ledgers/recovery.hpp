// Makes the report of a process that died without writing one. The source is its ledger, the file
// with the allocation records, which stays when the process is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/cuwarden/ledgers/acting_as.hpp"

namespace cuwarden {

// Outcomes of an attempt to make a report from a ledger.
enum class RecoveryOutcome : std::uint8_t {
  // A report was made. The ledger is removed; if it is damaged, it stays under another name.
  recovered,
  // The process had already written its report. The ledger is removed.
  had_report,
  // The recorded process still runs. Nothing was done.
  running,
  // Another cuwarden process is making the report of the ledger, or has just made it. Nothing was
  // done.
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
  // The ledger belongs to another user, and the time that may be spent on that user's ledgers is
  // used up. Nothing was done.
  no_time,
};

// The result of an attempt to make a report from a ledger.
struct Recovery {
  RecoveryOutcome outcome = RecoveryOutcome::failed;
  // Path of the report if the outcome is `recovered` or `had_report`; otherwise empty.
  std::string report{};
  // A message for the user about the outcome: one line, without the ledger's path.
  std::string text{};
  // The path at which a damaged ledger stays after its report was made; otherwise empty.
  std::string kept{};
  // User that owns the ledger, if recover_as_owner() worked with that user's rights, or had no time
  // left to do so (no_time). Null if this process worked with its own rights, or if the work with
  // the owner's rights gave no result.
  std::optional<uid_t> owner{};
  // Text of the report, if RecoveryRequest::wants_content was set and the report was made with the
  // rights of the ledger's owner; otherwise empty. It was read with the owner's rights, since the
  // owner chooses the report's path, which may lead anywhere. Empty also if it could not be read.
  std::string content{};
};

// Options of recover() and recover_as_owner().
struct RecoveryRequest {
  // Pid of a child of this process that is known to have ended, because wait() returned it; 0:
  // none. If the ledger records that child, no further check is made that its process has ended.
  pid_t waited_for = 0;
  // Signal that killed the child `waited_for`; null if it ended in another way or there is none.
  std::optional<int> signal{};
  // True if the report's path in the ledger is known to mean the same file here as for the recorded
  // process; `cuwarden run` knows this, since it started that process. If false, and the recorded
  // process ran on another host or in another container, the report is written beside the ledger.
  bool path_is_known = false;
  // True if recover_as_owner() should also return the report's text, in Recovery::content.
  bool wants_content = false;
  // True if a report is made even if CUWARDEN_REPORT_IF, as the recorded process had it, asks for
  // none. Set when the user has asked for the report of this one ledger.
  bool always = false;
  // Absolute path of the report to make, or of a folder for it. Empty: the path to which the
  // recorded process would have written its report. If set, the report is made even if
  // CUWARDEN_REPORT_IF asks for none, and no old reports of the program are removed.
  std::string output{};
};

// Default for the longest time that root's command spends on one ledger of another user. The report
// of the largest ledger takes less.
inline constexpr std::chrono::minutes usual_time_for_a_ledger{2};

// Makes the report of the ledger at `ledger_path`, with this process's own rights. Leaves a ledger
// of another user alone (RecoveryOutcome::other_user): the ledger contains the path of the file to
// write, and another user must not choose what this process writes.
Recovery recover(const std::string& ledger_path, const RecoveryRequest&);

// Makes the report of the ledger at `ledger_path`. If this process is root and the ledger belongs
// to another user, a child process with that user's rights does the work. The child reads and
// writes only files that the owner could, and the report belongs to the owner. `TimeForUsers`: the
// time left for each user. If that user's time is used up, the outcome is `no_time`; if the work
// takes longer, the child is killed and the outcome is `failed`. In all other cases does what
// recover() does.
Recovery recover_as_owner(const std::string& ledger_path, const RecoveryRequest&, TimeForUsers&);

}  // namespace cuwarden
