// The limits on this process's host memory at this moment, and how much of each is taken: for the
// account of a request that was refused.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

struct HostLimits {
  // In a field: the system does not say. In a limit: it says that there is none.
  static constexpr std::uint64_t unknown = UINT64_MAX, unlimited = UINT64_MAX - 1;

  // Bytes of the machine; /proc/meminfo: MemTotal, MemAvailable, SwapFree, CommitLimit,
  // Committed_AS.
  std::uint64_t ram_bytes = unknown;
  std::uint64_t ram_available_bytes = unknown;
  std::uint64_t swap_free_bytes = unknown;
  std::uint64_t commit_limit_bytes = unknown;  // holds in overcommit mode 2 only
  std::uint64_t committed_bytes = unknown;
  // 0: by a guess, 1: always, 2: never more than the commit limit; /proc/sys/vm/overcommit_memory.
  std::uint64_t overcommit_mode = unknown;

  // Bytes of this process's address space: RLIMIT_AS (or `unlimited`), and what is mapped (statm).
  std::uint64_t address_space_limit_bytes = unknown;
  std::uint64_t address_space_bytes = unknown;
  // Mappings in the user's part of /proc/self/maps, and vm.max_map_count: one more than that fits.
  std::uint64_t mappings = unknown;
  std::uint64_t max_mappings = unknown;
  // Bytes: the largest range without a mapping from vm.mmap_min_addr to the end of the user's part.
  std::uint64_t largest_gap_bytes = unknown;

  // Bytes, of the memory cgroup that this process is in or of one above it: of those with a limit
  // the one that leaves the least. Without any: `unlimited`, and what its own cgroup uses. The page
  // cache is in what is used, and the kernel gives it up before it refuses.
  std::uint64_t cgroup_limit_bytes = unknown;
  std::uint64_t cgroup_used_bytes = unknown;
  std::uint64_t cgroup_cache_bytes = 0;  // of those
};

// A file that is missing or says something else makes its own fields unknown and no others. Takes
// 20 KiB of stack and keeps errno. The time is /proc/self/maps's: 0.1 ms of a small process, some
// 20 ms of 64,000 mappings, four fifths of that in the kernel.
HostLimits read_host_limits() noexcept;
// The machine's and the cgroup's memory alone.
HostLimits read_host_memory() noexcept;

// Reads from the folder `proc` instead of /proc, for tests. The resource limit and the cgroup are
// those of this process.
HostLimits read_host_limits(const char* proc) noexcept;

// Mappings that are read at most, a bound on the time. Distributions allow 2^20, and one more fits.
// With more of them, their number and the largest gap are unknown.
inline constexpr std::uint64_t most_mappings = (std::uint64_t{1} << 20) + 4096;

}  // namespace cuwarden::shim
