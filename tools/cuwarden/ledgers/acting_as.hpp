// Does work with another user's rights, in a child process. That user can stop, slow down or kill
// the child, so this process waits for the child only for a bounded time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace cuwarden {

// Bounds the time that a command of root's spends on the files of other users. One piece of work
// may take the time `each`, and all work for one user together five times `each`.
class TimeForUsers {
 public:
  // `each`: longest time for one piece of work, such as the report of one ledger. All work for one
  // user together may take five times as long.
  explicit TimeForUsers(std::chrono::nanoseconds each) : each_(each) {}

  // Returns the longest time that one piece of work may take, as given to the constructor.
  std::chrono::nanoseconds each() const { return each_; }
  // Returns the time that the next piece of work for this user may take; 0 or less if the user's
  // time is used up.
  std::chrono::nanoseconds left(uid_t) const;
  // Subtracts time that a piece of work for the user has taken.
  void spend(uid_t, std::chrono::nanoseconds);

 private:
  std::chrono::nanoseconds each_;
  std::map<uid_t, std::chrono::nanoseconds> spent_;  // time spent so far, by user
};

// The result of work that ask_as_user() did in a child process.
struct ChildsAnswer {
  enum class Failure : unsigned char {
    none,      // an answer came in time; it may be empty
    no_child,  // no child process or no pipe could be made
    late,      // the answer was not complete in time, or too long; the child was killed
  };
  Failure failure = Failure::none;
  // The text that work() returned in the child. Empty after a failure, and if the child could not
  // take the user's rights. Cut, or empty, if the child died.
  std::string text;
};

// Calls work() in a child process that has the user's rights and limits on time and memory, and
// returns the text that work() returned there. Only root may call this. Waits for the child as long
// as the user's time lasts (TimeForUsers::left()), then kills it, and subtracts the time that it
// took. A text of more than about `most_bytes` bytes is a failure (Failure::late).
ChildsAnswer ask_as_user(uid_t, TimeForUsers&, std::size_t most_bytes,
                         const std::function<std::string()>& work);

}  // namespace cuwarden
