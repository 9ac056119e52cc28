// The state of a thread of the calling process, from /proc.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

namespace cuwarden {

// Returns the thread's state by the letter of proc(5): R if it runs or could run, S if it sleeps, Z
// if it has ended but still has an entry in /proc. Returns 0 if there is no such thread. `thread`:
// the id that gettid() returns. Takes no memory of the heap, so that signal handlers may call it.
inline char thread_state(pid_t thread) {
  char path[64], bytes[256];  // the state comes after a name of 64 bytes at most
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(thread));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return '\0';
  const ssize_t count = read(file, bytes, sizeof bytes);
  close(file);
  if (count <= 0) return '\0';
  const std::string_view text(bytes, static_cast<std::size_t>(count));
  const std::size_t name_end = text.rfind(')');  // the name may have parentheses, too
  return name_end == text.npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

}  // namespace cuwarden
