// Makes the report of a process that died without writing one, from its ledger: the file with the
// allocation records, which stays when the process is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/cuwarden/ledgers/time_for_users.hpp"

namespace cuwarden {

// Outcomes of an attempt to make a report from a ledger.
enum class RecoveryOutcome : std::uint8_t {
  // A report was made. The ledger is removed; if it is damaged, it stays (Recovery::kept).
  recovered,
  // The recorded process had already written its report. The ledger is removed.
  had_report,
  // The recorded process still runs, or a process may still be making the ledger: its header is not
  // complete yet. Nothing was done.
  running,
  // Another cuwarden process is making the report of the ledger, or has just removed or changed the
  // ledger. Nothing was done.
  busy,
  // This process cannot see whether the recorded process still lives. Nothing was done.
  out_of_sight,
  // The ledger belongs to another user, whose rights this process cannot take. Nothing was done.
  other_user,
  // CUWARDEN_REPORT_IF, as the recorded process had it, asks for no report. The ledger is removed,
  // and an earlier report of the process, too.
  not_wanted,
  // The recorded process died before it recorded anything. The ledger is removed.
  nothing_in_it,
  // No report could be made. The ledger stays.
  failed,
  // The ledger belongs to another user, and the time that may be spent on that user's ledgers is
  // used up. Nothing was done.
  no_time,
};

// The result of an attempt to make a report from a ledger.
struct Recovery {
  // Outcome of the attempt to make the report.
  RecoveryOutcome outcome = RecoveryOutcome::failed;
  // Path of the report if the outcome is `recovered` or `had_report`; otherwise empty.
  std::string report{};
  // A message for the user about the outcome: one line, without the ledger's path and a line feed.
  std::string text{};
  // The path at which a damaged ledger stays after its report was made; otherwise empty.
  std::string kept{};
  // User that owns the ledger. Set only if a process with that user's rights gave this result, or
  // if no time was left to start one (outcome `no_time`). Null if this process worked with its own
  // rights, or if the process with the owner's rights gave no result.
  std::optional<uid_t> owner{};
  // Text of the report at `report`, read with the rights of the ledger's owner, since the owner
  // chooses the path, which may lead anywhere. Empty unless RecoveryRequest::wants_content was true
  // and the work was done with the owner's rights. Empty, too, if the report could not be read.
  std::string content{};
};

// Options of recover() and recover_as_owner(): what the caller knows of the ended process, and
// which report it wants.
struct RecoveryRequest {
  // Pid of a child of this process that has ended, since wait() has returned it; 0: none. If the
  // ledger records that child, it is not checked again that the recorded process has ended.
  pid_t waited_for = 0;
  // Signal that killed the child `waited_for`; null if it ended in another way or there is none.
  std::optional<int> signal{};
  // True if the report's path in the ledger means the same file for this process as for the
  // recorded one; `cuwarden run` sets this, since it started that process. If false, and the
  // recorded process ran on another host or in another container, the report is written beside the
  // ledger.
  bool path_is_known = false;
  // True if the result should contain the report's text (Recovery::content) if the work is done
  // with the rights of the ledger's owner.
  bool wants_content = false;
  // True if the report is made even if CUWARDEN_REPORT_IF, as the recorded process had it, asks for
  // none: the user has asked for the report of this one ledger.
  bool always = false;
  // Path of the report to make, or of a folder for it. Empty: the path to which the recorded
  // process would have written its report; if that fails, the report is written beside the ledger.
  // If set, the report is made even if CUWARDEN_REPORT_IF asks for none, and no old reports of the
  // program are removed. A report that the recorded process itself wrote before its end is removed.
  std::string output{};
};

// Longest time that root's command spends on one ledger of another user, unless the user chooses
// another one (`cuwarden recover --timeout`). The report of the largest ledger takes less.
inline constexpr std::chrono::minutes usual_time_for_a_ledger{2};

// Makes the report of the ledger at `ledger_path`, with this process's own rights, and removes the
// ledger; RecoveryOutcome lists the other cases. Then removes old reports of the program, as the
// recorded process's CUWARDEN_REPORT_KEEP says. Shows lines of progress on a terminal. Leaves
// another user's ledger alone (RecoveryOutcome::other_user), also if this process is root's: the
// ledger contains the path of the file to write, and another user must not choose where this
// process writes.
Recovery recover(const std::string& ledger_path, const RecoveryRequest&);

// Makes the report of the ledger at `ledger_path`. If this process is root and the ledger belongs
// to another user, a child process with that user's rights does the work. The child reads and
// writes only files that the owner could, and the report belongs to the owner. `TimeForUsers`: the
// time left for each user, from which the time of the work is subtracted. If that user's time is
// used up, the outcome is `no_time`; if the work takes longer, the child is killed and the outcome
// is `failed`. If this process is not root, or root owns the ledger, this function does what
// recover() does.
Recovery recover_as_owner(const std::string& ledger_path, const RecoveryRequest&, TimeForUsers&);

}  // namespace cuwarden
