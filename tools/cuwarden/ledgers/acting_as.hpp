// Work that is done with another user's rights, in a child of this process. The user can stop, slow
// down or kill the child; this process waits for it only for a bounded time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace cuwarden {

// Bounds the time that root's command spends on the files of other users: `each` for one piece of
// work, and five times `each` for all work of one user.
class TimeForUsers {
 public:
  explicit TimeForUsers(std::chrono::nanoseconds each) : each_(each) {}

  std::chrono::nanoseconds each() const { return each_; }
  // Returns the time that the user's next piece of work may take; 0 or less if none is left.
  std::chrono::nanoseconds left(uid_t) const;
  void spend(uid_t, std::chrono::nanoseconds);

 private:
  std::chrono::nanoseconds each_;
  std::map<uid_t, std::chrono::nanoseconds> spent_;
};

struct ChildsAnswer {
  enum class Failure : unsigned char {
    none,
    no_child,  // no process could be made
    late,      // the answer was not whole in time, or was too large; the child was killed
  };
  Failure failure = Failure::none;
  std::string text;  // what the child wrote; nothing if it died or could not take the rights
};

// Calls `work` in a child process with the user's rights and with limits on time and memory.
// Returns the text that `work` returned there. `most_bytes`: length of the longest text. Only root
// may call this.
ChildsAnswer ask_as_user(uid_t, TimeForUsers&, std::size_t most_bytes,
                         const std::function<std::string()>& work);

}  // namespace cuwarden
