// The cgroup that counts this process's memory. It is noted in order to explain a kill later.
#pragma once

#include <climits>
#include <cstdint>

namespace cuwarden::ledger {

// The cgroup that counts the memory of this process.
struct OwnCgroup {
  char path[PATH_MAX] = "";  // path of its folder; empty: unknown
  std::uint64_t inode = 0, oom_kills = 0;
};

// Returns the calling process's memory cgroup, with the OOM kills that it has counted so far.
OwnCgroup own_cgroup() noexcept;

}  // namespace cuwarden::ledger
