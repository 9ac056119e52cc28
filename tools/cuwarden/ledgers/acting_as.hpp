// Does work with another user's rights, in a child process. That user can stop, slow down or kill
// the child, so this process waits for the child only for a limited time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>

#include "tools/cuwarden/ledgers/time_for_users.hpp"

namespace cuwarden {

// The result of work that ask_as_user() did in a child process.
struct ChildsAnswer {
  // Reasons why the work in the child process gave no text; `none`: it gave one, maybe empty.
  enum class Failure : unsigned char {
    none,      // the child's text came in time
    no_child,  // no child process or no pipe could be made
    late,      // the text was not complete in time, or too long; the child was killed
  };
  // Reason why the child gave no text; none: it gave one.
  Failure failure = Failure::none;
  // The text that the work in the child returned. Empty after a failure, if the child could not
  // take the user's rights, and if the work threw an exception. If the child died, the text is
  // empty or lacks its end.
  std::string text;
};

// Calls work() in a child process that has the user's rights and limits on time and memory, and
// returns the text that work() returned there. Only root may call this. `TimeForUsers`: the time
// left for each user. When the time of this user is over, the child is killed. The time that the
// call took is subtracted. A text of more than about `most_bytes` bytes is a failure
// (Failure::late).
ChildsAnswer ask_as_user(uid_t, TimeForUsers&, std::size_t most_bytes,
                         const std::function<std::string()>& work);

}  // namespace cuwarden
