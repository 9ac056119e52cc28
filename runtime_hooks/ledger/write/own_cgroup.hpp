// The cgroup that counts this process's memory. It is noted in order to explain a kill later.
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
