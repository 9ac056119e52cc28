// The limits on this process's host memory at this moment, and how much of each is taken: for the
// account of a request that was refused.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

// Host memory and limits that decide if page-locked memory can be had.
struct HostLimits {
  // unknown: the system does not tell the value. unlimited: the system says that there is no limit.
  static constexpr std::uint64_t unknown = UINT64_MAX, unlimited = UINT64_MAX - 1;

  // The machine's memory in bytes, from /proc/meminfo: MemTotal, MemAvailable, SwapFree,
  // CommitLimit, Committed_AS.
  std::uint64_t ram_bytes = unknown;
  std::uint64_t ram_available_bytes = unknown;
  std::uint64_t swap_free_bytes = unknown;
  std::uint64_t commit_limit_bytes = unknown;  // holds in overcommit mode 2 only
  std::uint64_t committed_bytes = unknown;
  // The kernel's rule for promising memory, from /proc/sys/vm/overcommit_memory. 0: it guesses, 1:
  // it promises any amount, 2: it promises no more than the commit limit.
  std::uint64_t overcommit_mode = unknown;

  // This process's address space in bytes: the limit (RLIMIT_AS, or `unlimited`), and the part that
  // is mapped (/proc/self/statm).
  std::uint64_t address_space_limit_bytes = unknown;
  std::uint64_t address_space_bytes = unknown;
  // Number of mappings of this process, from /proc/self/maps, and their limit vm.max_map_count. The
  // kernel allows one mapping more than that limit.
  std::uint64_t mappings = unknown;
  std::uint64_t max_mappings = unknown;
  // Size in bytes of the largest gap between mappings, from vm.mmap_min_addr to the end of the
  // user's part.
  std::uint64_t largest_gap_bytes = unknown;

  // Limit and use in bytes of a memory cgroup: of this process's own cgroup and those above it, the
  // one whose limit leaves the least room. If none has a limit: `unlimited`, and the use of its own
  // cgroup. Used memory includes the page cache, which the kernel gives up before it refuses
  // memory.
  std::uint64_t cgroup_limit_bytes = unknown;
  std::uint64_t cgroup_used_bytes = unknown;
  std::uint64_t cgroup_cache_bytes = 0;  // page cache among cgroup_used_bytes
};

// Reads all of it. A file of /proc that is missing or cannot be understood leaves only its own
// fields unknown. Takes 20 KiB of stack and keeps errno. Takes 0.1 ms in a small process, and some
// 20 ms in one with 64,000 mappings.
HostLimits read_host_limits() noexcept;
// Reads the machine's and the cgroup's memory alone; all other fields stay unknown.
HostLimits read_host_memory() noexcept;

// Reads from the folder `proc` instead of /proc, for tests. The resource limit and the cgroup are
// still those of this process.
HostLimits read_host_limits(const char* proc) noexcept;

// Largest number of mappings that is read, which bounds the time. Distributions allow 2^20 and one
// more. In a process with more, `mappings` and `largest_gap_bytes` are unknown.
inline constexpr std::uint64_t most_mappings = (std::uint64_t{1} << 20) + 4096;

}  // namespace cuwarden::shim
