// Memory that the host can still give to this process.
#pragma once

#include <cstdint>

namespace cuwarden::shim {

// Returns the bytes of memory that this process could still get from the host: the RAM that is
// available, or less if the limit of its memory cgroup leaves less. Page cache counts as available,
// three quarters of it in the cgroup. If the RAM or the cgroup's limit cannot be read, it does not
// count; UINT64_MAX if neither can.
std::uint64_t host_memory_left() noexcept;

// Returns the bytes of host memory that cuwarden may now put behind device pointers (spilling):
// host_memory_left() less a reserve of 256 MiB. 0 if less than the reserve is left; about
// UINT64_MAX if no limit can be read.
std::uint64_t room_for_spilling() noexcept;

}  // namespace cuwarden::shim
