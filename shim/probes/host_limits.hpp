// The limits on the host memory of this process, and how much of each is used. The report shows
// them for each request that was refused for lack of memory.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

// Host memory and its limits, as the system told them when they were read. They decide if a request
// for page-locked memory can be served.
struct HostLimits {
  // Special values of the fields. unknown: the system does not tell the number. unlimited: the
  // system says that there is no limit.
  static constexpr std::uint64_t unknown = UINT64_MAX, unlimited = UINT64_MAX - 1;

  // Bytes of the machine's RAM, as /proc/meminfo says (MemTotal).
  std::uint64_t ram_bytes = unknown;
  // Bytes of RAM that programs can still get without swapping (MemAvailable of /proc/meminfo).
  std::uint64_t ram_available_bytes = unknown;
  // Bytes of swap space that are not in use (SwapFree of /proc/meminfo).
  std::uint64_t swap_free_bytes = unknown;
  // Most bytes that the kernel promises to all processes together (CommitLimit of /proc/meminfo).
  // The kernel keeps to this limit only if overcommit_mode is 2.
  std::uint64_t commit_limit_bytes = unknown;
  // Bytes that the kernel has promised to all processes together (Committed_AS of /proc/meminfo).
  std::uint64_t committed_bytes = unknown;
  // The kernel's rule for promising memory, from /proc/sys/vm/overcommit_memory. 0: it guesses, 1:
  // it promises any amount, 2: it promises no more than commit_limit_bytes.
  std::uint64_t overcommit_mode = unknown;

  // Limit on this process's address space in bytes (RLIMIT_AS); `unlimited` without a limit.
  std::uint64_t address_space_limit_bytes = unknown;
  // Bytes of this process's address space that are mapped, from /proc/self/statm.
  std::uint64_t address_space_bytes = unknown;
  // Number of memory mappings of this process, from /proc/self/maps. `unknown` also if there are
  // more than most_mappings.
  std::uint64_t mappings = unknown;
  // Limit on the number of mappings (vm.max_map_count). The kernel allows one mapping more.
  std::uint64_t max_mappings = unknown;
  // Size in bytes of the largest unmapped range of this process's addresses, between
  // vm.mmap_min_addr and the end of user space (2^47). A new mapping cannot be larger.
  std::uint64_t largest_gap_bytes = unknown;

  // Limit in bytes of this process's memory cgroup or of a cgroup above it: of the one whose limit
  // leaves the fewest bytes unused. `unlimited` if none has a limit.
  std::uint64_t cgroup_limit_bytes = unknown;
  // Bytes used in the cgroup that has the limit cgroup_limit_bytes; in this process's own cgroup if
  // none has a limit. They include the page cache, which the kernel gives up before it refuses
  // memory.
  std::uint64_t cgroup_used_bytes = unknown;
  // Bytes of page cache among cgroup_used_bytes; 0 also if the cgroup could not be read.
  std::uint64_t cgroup_cache_bytes = 0;
};

// Reads all limits of this process. A file of /proc that is missing or cannot be parsed leaves only
// its own fields unknown. Takes 20 KiB of stack and keeps errno. Takes 0.1 ms in a small process,
// and some 20 ms in one with 64,000 mappings.
HostLimits read_host_limits() noexcept;
// Reads only the machine's memory (/proc/meminfo), its overcommit mode and the cgroup's memory. The
// fields about address space and mappings stay unknown. Fast even in a process with many mappings.
// Keeps errno.
HostLimits read_host_memory() noexcept;

// Returns the bytes of memory that this process could still get from the host: the available RAM,
// or what the limit of its memory cgroup leaves, whichever is less. Page cache counts as available:
// all of it in the RAM, three quarters of it in the cgroup. A figure that cannot be read is left
// out; UINT64_MAX if neither can be read.
std::uint64_t host_memory_left() noexcept;

// Reads all limits, for tests, from the folder `proc` (a path) instead of /proc. Only RLIMIT_AS and
// the cgroup are still those of this process.
HostLimits read_host_limits(const char* proc) noexcept;

// Largest number of memory mappings that read_host_limits() reads, which bounds its time. In a
// process with more, HostLimits::mappings and largest_gap_bytes are unknown. Linux distributions
// allow up to 2^20 mappings and one more (vm.max_map_count).
inline constexpr std::uint64_t most_mappings = (std::uint64_t{1} << 20) + 4096;

}  // namespace cuwarden::shim
