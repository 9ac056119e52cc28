// Which cgroup counts this process's memory: where to look when the process was killed.
#pragma once

#include <climits>
#include <cstdint>

namespace cuwarden::ledger {

struct OwnCgroup {
  char path[PATH_MAX] = "";  // its folder; empty: unknown
  std::uint64_t inode = 0, oom_kills = 0;
};

OwnCgroup own_cgroup() noexcept;

}  // namespace cuwarden::ledger
