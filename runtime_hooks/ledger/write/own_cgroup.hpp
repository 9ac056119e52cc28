// The cgroup that counts this process's memory. The ledger keeps it, so that a later kill by the
// kernel's OOM killer can be explained.
#pragma once

#include <climits>
#include <cstdint>

namespace cuwarden::ledger {

// The cgroup that counts the memory of the calling process.
struct OwnCgroup {
  char path[PATH_MAX] = "";  // path of the cgroup's folder; empty: unknown
  // `inode`: inode number of the cgroup's folder; 0: unknown. `oom_kills`: number of processes in
  // the cgroup that the kernel has killed so far for lack of memory; 0 also if unknown.
  std::uint64_t inode = 0, oom_kills = 0;
};

// Returns the cgroup that counts the calling process's memory: the process's own cgroup, or the
// nearest one above it that counts memory. If there is none, or if it cannot be found, the path is
// empty and the numbers are 0.
OwnCgroup own_cgroup() noexcept;

}  // namespace cuwarden::ledger
