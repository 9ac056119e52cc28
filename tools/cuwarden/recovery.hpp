// Makes the report of a process that died without writing one, from the ledger it left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace cuwarden {

enum class RecoveryOutcome : std::uint8_t {
  recovered,      // there is a report now, and the ledger is gone unless it is damaged
  had_report,     // the process had written it; the ledger is gone
  running,        // its process lives: left alone
  busy,           // another cuwarden is at work on it, or was: left alone
  out_of_sight,   // whether its process lives cannot be seen from here: left alone
  other_user,     // it belongs to somebody else, and we are not root: left alone
  nothing_in_it,  // its process died before it recorded anything; the ledger is gone
  failed,         // no report; the ledger stays
};

struct Recovery {
  RecoveryOutcome outcome = RecoveryOutcome::failed;
  std::string report;  // its path: recovered, had_report
  std::string text;    // what to tell the user, in one line without the ledger's path
  std::string kept;    // where a damaged ledger stays: recovered
};

struct RecoveryRequest {
  // The process whose end the caller has waited for, and the signal that killed it.
  pid_t waited_for = 0;
  std::optional<int> signal;
  // A report path counts where the process ran. From elsewhere (another host, another container)
  // the report goes beside the ledger; `run` has started the process itself and knows better.
  bool path_is_known = false;
};

// Acts with the rights that this process has, so only for a ledger of the user that it acts as:
// what another's file says must not be done with them.
Recovery recover(const std::string& ledger_path, const RecoveryRequest&);

// The same, where the ledger is another user's and we are root: a child does it with that user's
// rights, so that whatever the ledger names is read and written as its owner could have done, and
// the report belongs to the owner.
Recovery recover_as_owner(const std::string& ledger_path, const RecoveryRequest&);

}  // namespace cuwarden
