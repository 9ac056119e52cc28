#include "shim/probes/host_room.hpp"

#include <algorithm>

#include "shim/probes/host_limits.hpp"

namespace cuwarden::shim {
namespace {

// Host memory that cuwarden never takes. Page-locked memory cannot be swapped out, so if none is
// left, the kernel kills this process or another one.
constexpr std::uint64_t left_to_host_bytes = std::uint64_t{256} << 20;

}  // namespace

// The kernel drops the page cache before it refuses memory, so the cache counts as available. Some
// of the cgroup's cache may be in use, so a quarter of it does not count.
std::uint64_t host_memory_left() noexcept {
  const HostLimits limits = read_host_memory();
  std::uint64_t room = UINT64_MAX;
  if (limits.ram_available_bytes != HostLimits::unknown) room = limits.ram_available_bytes;
  if (limits.cgroup_limit_bytes != HostLimits::unknown &&
      limits.cgroup_limit_bytes != HostLimits::unlimited &&
      limits.cgroup_used_bytes != HostLimits::unknown) {
    const std::uint64_t cache = limits.cgroup_cache_bytes / 4 * 3;
    const std::uint64_t used = limits.cgroup_used_bytes - std::min(limits.cgroup_used_bytes, cache);
    room = std::min(room, limits.cgroup_limit_bytes - std::min(limits.cgroup_limit_bytes, used));
  }
  return room;
}

std::uint64_t room_for_spilling() noexcept {
  const std::uint64_t room = host_memory_left();
  return room - std::min(room, left_to_host_bytes);
}

}  // namespace cuwarden::shim
