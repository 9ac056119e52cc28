// The user's choices about memory that cuwarden serves instead of the driver.
#pragma once

#include <cstdint>

#include "runtime_hooks/pool/spill.hpp"

namespace cuwarden::serving {

// The time from which cuwarden's pool serves requests whose sizes waste memory in the driver. The
// driver cuts such sizes from slabs (units of 2 MiB), or rounds them up much. Page-locked memory is
// served under `from_start` only.
enum class PoolUse : std::uint8_t {
  never,
  // On each device, once more than a fiftieth of its memory is locked: freed by the program, but in
  // a slab (2 MiB unit of the driver) that is partly live. Never in a process that shares memory by
  // IPC handles.
  when_slabs_lock,
  from_start,
};

// Settings of the memory that cuwarden serves instead of the driver.
struct ServingSettings {
  // The time from which cuwarden's pool serves requests that waste memory in the driver.
  PoolUse pool = PoolUse::never;
  // Longest time, in nanoseconds, for which the program may be paused for one refused request, to
  // move memory behind its addresses (meshing). The pauses for one request share this time. 0:
  // memory is not moved.
  std::uint64_t mesh_pause_ns = 0;
  // True if each copy of moved memory (meshing) is compared with the original.
  bool verifies_meshing = false;
  // True if meshing copies blocks by a kernel, which is loaded into a context when the pool serves
  // its first request there. False: the driver's copy functions copy them.
  bool meshes_by_kernel = false;
  // True if memory that meshing could free is reported to the program as free.
  bool shows_meshable = false;
  // Limits of spilling: serving requests for device memory with host memory.
  pool::SpillSettings spill{};
};

}  // namespace cuwarden::serving
