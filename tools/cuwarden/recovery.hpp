// Makes the report of a process that died without writing one, from the ledger it left behind.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/cuwarden/acting_as.hpp"

namespace cuwarden {

enum class RecoveryOutcome : std::uint8_t {
  recovered,      // there is a report now, and the ledger is gone unless it is damaged
  had_report,     // the process had written it; the ledger is gone
  running,        // its process lives: left alone
  busy,           // another cuwarden is at work on it, or was: left alone
  out_of_sight,   // whether its process lives cannot be seen from here: left alone
  other_user,     // it belongs to somebody else, and we are not root: left alone
  not_wanted,     // CUWARDEN_REPORT_IF wants no report of it; the ledger is gone
  nothing_in_it,  // its process died before it recorded anything; the ledger is gone
  failed,         // no report; the ledger stays
  no_time,        // its owner's ledgers have taken all the time that one user gets: left alone
};

struct Recovery {
  RecoveryOutcome outcome = RecoveryOutcome::failed;
  std::string report{};  // its path: recovered, had_report
  std::string text{};    // what to tell the user, in one line without the ledger's path
  std::string kept{};    // where a damaged ledger stays: recovered
  // Another user, with whose rights it was done; null: with ours.
  std::optional<uid_t> owner{};
  // Bytes of the report, if they were wanted, read with the owner's rights: its path is the
  // owner's, too, and may lead anywhere. Without an owner, and where it could not be read, nothing.
  std::string content{};
};

struct RecoveryRequest {
  // The process whose end the caller has waited for, and the signal that killed it.
  pid_t waited_for = 0;
  std::optional<int> signal{};
  // A report path counts where the process ran. From elsewhere (another host, another container)
  // the report goes beside the ledger; `run` has started the process itself and knows better.
  bool path_is_known = false;
  bool wants_content = false;  // Recovery::content
  // A person asked for the report of this one ledger: CUWARDEN_REPORT_IF does not count.
  bool always = false;
  // Path of the report, absolute, or a folder for it; empty: where its process would have written
  // it. With a path the report is always made, and no other one is removed.
  std::string output{};
};

// For a ledger of another user: longer than the largest report takes.
inline constexpr std::chrono::minutes usual_time_for_a_ledger{2};

// Acts with the rights that this process has, so only for a ledger of the user that it acts as:
// what another's file says must not be done with them.
Recovery recover(const std::string& ledger_path, const RecoveryRequest&);

// The same, where the ledger is another user's and we are root: a child does it with that user's
// rights, so that whatever the ledger names is read and written as its owner could have done, and
// the report belongs to the owner. An owner who stops that child, or whose ledger takes long to
// read, loses the report after a while, and nothing else is held up.
Recovery recover_as_owner(const std::string& ledger_path, const RecoveryRequest&, TimeForUsers&);

}  // namespace cuwarden
