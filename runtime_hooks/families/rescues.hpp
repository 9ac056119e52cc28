// How refused requests are served, and what the user is told of it.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/pool/spill.hpp"
#include "runtime_hooks/rescue/ladder.hpp"

namespace cuwarden::families {

// What the user is told of. With it goes the device, what was asked for, and the host's part of it.
enum class RescueNews : std::uint8_t {
  spilled,
  cap_reached,
  host_is_full,
  not_supported,
  refused,
  not_shared,       // the program asked for an IPC handle of such memory
  not_granted,      // copies from another device may fail for such memory
  pool_not_shared,  // the program asked for an IPC handle of memory of the pool
  lost,             // the driver did not map memory again that was moved
  pool_not_supported,
  waits,
  waited_in_vain,
  // Why the pool's memory stays where it is, though what fails could be had of it.
  memory_has_handle,
  library_reaches_memory,
  unknown_functions,
};
// When new requests that the driver would serve with a waste are served by the pool.
enum class PoolUse : std::uint8_t {
  never,
  when_slabs_lock,  // once the driver's slabs lock a fiftieth of the device
  from_start,
};
// `rescue_notice` is called for the first of each news.
struct Rescues {
  rescue::Settings ladder{};
  PoolUse pool = PoolUse::never;
  // Whether a library is loaded that gives its memory to other processes, which the pool's cannot
  // be; asked for before the pool is turned on by itself. Null: none is.
  bool (*shares_memory)() noexcept = nullptr;
  // The longest pause for moving memory behind the program's addresses; 0: it is not moved. Nor
  // where a library is loaded that may reach it past the driver's calls, or nobody says.
  std::uint64_t mesh_pause_ns = 0;
  bool (*reaches_memory)() noexcept = nullptr;
  pool::SpillSettings spill{};
  void (*rescue_notice)(RescueNews, DeviceOrdinal, std::uint64_t bytes,
                        std::uint64_t host_bytes) noexcept = nullptr;
};

}  // namespace cuwarden::families
