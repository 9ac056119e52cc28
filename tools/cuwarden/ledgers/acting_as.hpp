// Does work with another user's rights, in a child process. That user can stop, slow down or kill
// the child, so this process waits for the child only for a limited time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace cuwarden {

// Limits the time that root's command spends on the files of other users. One piece of work, such
// as the report of one ledger, may take the time each(), and all work for one user five times
// each().
class TimeForUsers {
 public:
  // `each`: longest time for one piece of work, such as the report of one ledger. All work for one
  // user together may take five times as long.
  explicit TimeForUsers(std::chrono::nanoseconds each) : each_(each) {}

  // Returns the longest time that one piece of work for a user may take.
  std::chrono::nanoseconds each() const { return each_; }
  // Returns the time that the next piece of work for this user may take, at most each(); 0 or less
  // if the user's time is used up.
  std::chrono::nanoseconds left(uid_t) const;
  // Subtracts the time that a piece of work for the user has taken from the time that is left for
  // this user's work.
  void spend(uid_t, std::chrono::nanoseconds);

 private:
  // Longest time for one piece of work on another user's files, such as the report of one ledger.
  std::chrono::nanoseconds each_;
  std::map<uid_t, std::chrono::nanoseconds> spent_;  // time spent so far on each user's files
};

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
