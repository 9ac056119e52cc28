// The state of a thread of the calling process, from /proc.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace cuwarden {

// Returns the thread's state by the letter of proc(5): R if it runs or could run, S if it sleeps, Z
// if it has ended but still has an entry in /proc. Returns 0 if there is no such thread. `thread`:
// the id that gettid() returns.
inline char thread_state(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may have parentheses, too
  return name_end == text.npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

}  // namespace cuwarden
