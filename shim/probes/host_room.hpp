// Memory that the host can still give to this process.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

// Returns the bytes of memory that this process could still get from the host: the available RAM,
// or what the limit of its memory cgroup leaves, whichever is less. Page cache counts as available:
// all of it in the RAM, three quarters of it in the cgroup. A figure that cannot be read is left
// out; UINT64_MAX if neither can be read.
std::uint64_t host_memory_left() noexcept;

// Returns the bytes of host memory that cuwarden may now put behind device pointers (spilling):
// host_memory_left() less a reserve of 256 MiB. 0 if less than the reserve is left; about
// UINT64_MAX if no limit can be read.
std::uint64_t room_for_spilling() noexcept;

}  // namespace cuwarden::shim
