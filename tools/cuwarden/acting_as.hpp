// Work that is done with another user's rights: by a child of this process, which that user can
// stop, slow down or kill, but which does not hold this process up.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace cuwarden {

// Bounds the time that root's command spends on the files of others: so much for each piece of
// work, and five times that for all pieces of one user.
class TimeForUsers {
 public:
  explicit TimeForUsers(std::chrono::nanoseconds each) : each_(each) {}

  std::chrono::nanoseconds each() const { return each_; }
  // For the next piece of this user's; 0 or less: none is left.
  std::chrono::nanoseconds left(uid_t) const;
  void spend(uid_t, std::chrono::nanoseconds);

 private:
  std::chrono::nanoseconds each_;
  std::map<uid_t, std::chrono::nanoseconds> spent_;
};

struct ChildsAnswer {
  enum class Failure : unsigned char {
    none,
    no_child,  // the system gave no process
    late,      // not whole within the time, or larger than was allowed: the child is killed
  };
  Failure failure = Failure::none;
  std::string text;  // what the child wrote; nothing if it died or could not take the rights
};

// Calls `work` in a child that has the user's rights and limits on its time and memory, and returns
// what `work` returned there. For root.
ChildsAnswer ask_as_user(uid_t, TimeForUsers&, std::size_t most_bytes,
                         const std::function<std::string()>& work);

}  // namespace cuwarden
