// The limits on the time that root's command spends on the files of other users.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

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

}  // namespace cuwarden
