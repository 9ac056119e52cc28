// Paths and times of a process that /proc gives.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/files/proc_stat.hpp"

namespace cuwarden::ledger {

// The folder in /proc of the calling process, or of another process that shares its memory.
class ProcFolder {
 public:
  // `pid`: pid of the process; 0: the calling process.
  explicit ProcFolder(std::int32_t pid) noexcept : pid_(pid != 0 ? pid : getpid()) {
    // "self" is right even if /proc belongs to another pid namespace.
    if (is_caller())
      std::strcpy(path_, "/proc/self/");
    else
      std::snprintf(path_, sizeof path_, "/proc/%d/", pid_);
  }
  // Returns the pid of the process; never 0.
  std::int32_t pid() const noexcept { return pid_; }
  // True if the folder is that of the calling process.
  bool is_caller() const noexcept { return pid_ == getpid(); }
  // Path of a file in the folder.
  struct Path {
    char text[64];  // path of the file, such as /proc/self/stat, with a zero byte at its end
  };
  // Returns the path of the file `name` in the folder. A path of more than 63 characters is cut.
  Path file(const char* name) const noexcept {
    Path path{};
    std::snprintf(path.text, sizeof path.text, "%s%s", path_, name);
    return path;
  }

 private:
  const std::int32_t pid_;  // pid of the process whose folder this is; never 0
  char path_[32];           // "/proc/self/" for the calling process, otherwise "/proc/PID/"
};

// Returns the age of a process in nanoseconds; 0 if it is not known, or not below the time of
// CLOCK_MONOTONIC. `ticks`: time of its start, in clock ticks since the boot
// (ProcStat::start_ticks).
inline std::uint64_t age_ns(std::uint64_t ticks) {
  const std::uint64_t age = age_ns_of(ticks);
  return age < time_ns_of(CLOCK_MONOTONIC) ? age : 0;
}

}  // namespace cuwarden::ledger
