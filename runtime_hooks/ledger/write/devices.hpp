// The rows of devices: what they are, how full they were, what was taken without being asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// A reading of a device's memory.
struct Reading {
  ReadingAt at = ReadingAt::none;
  std::uint64_t total_bytes = 0, free_bytes = 0;
  std::optional<std::uint64_t>
      memory_pool_idle_bytes;  // kept unused by this process's memory pools
};

// The pool's figures on one device: bytes that it holds, the part in live allocations, and totals
// of what it has served and given back. For meshing: bytes given back by it, pages that shared
// memory, and the time for which the program was paused.
struct ArenaUse {
  std::uint64_t held_bytes = 0, live_bytes = 0;
  std::uint64_t served_count = 0, served_bytes = 0, returned_bytes = 0;
  std::uint64_t meshed_pages = 0, meshed_bytes = 0, pause_ns = 0;
};

// Device memory that a call took or gave back without being asked for memory. The fields are added
// to the device's numbers, none of which falls below 0.
struct ImplicitChange {
  bool contexts_ended = false;  // all contexts ended: the device's numbers are set to 0 first
  std::uint64_t used_after_first_context_bytes = 0;  // 0: no change
  std::int64_t context_bytes = 0, module_bytes = 0, local_memory_bytes = 0, heap_bytes = 0,
               stream_bytes = 0;
  // Bytes given back by an unknown owner: subtracted from local memory, then code, then the
  // contexts.
  std::uint64_t given_back_bytes = 0;
  // Bytes of contexts that were given back and are taken again; at most lent_context_bytes().
  std::uint64_t taken_again_bytes = 0;
  // Bytes given back by the end of one of several contexts: subtracted from further contexts' own
  // memory, then from memory taken inside them.
  std::uint64_t one_ended_bytes = 0;
  // Local memory for one thread of a kernel that needs more than all before; 0: no such kernel.
  std::uint64_t largest_local_bytes = 0;
  std::string_view largest_local_kernel{};  // empty: its name is not known
};

class Devices {
 public:
  Devices(Storage& storage, const ProcessTime& time) noexcept : storage_(storage), time_(time) {}

  // Stores the device's name and UUID. Only the first call for a device has an effect.
  void identify(DeviceOrdinal, std::string_view name, const std::uint8_t (&uuid)[16]) noexcept;
  void note_reading(DeviceOrdinal, const Reading&) noexcept;
  void set_other_processes(DeviceOrdinal, ByteCount) noexcept;
  // Note that this many bytes of an allocation on the device are in host memory, and that they are
  // freed.
  void spilled(DeviceOrdinal, Kind, ByteCount) noexcept;
  void unspilled(DeviceOrdinal, Kind, ByteCount) noexcept;
  std::uint64_t spilled_bytes_on(DeviceOrdinal) noexcept;
  // Returns the part of spilled_bytes_on() that was asked for in stream order.
  std::uint64_t spilled_in_stream_order_on(DeviceOrdinal) noexcept;
  // Sets the pool's present figures on the device.
  void set_arena(DeviceOrdinal, const ArenaUse&) noexcept;
  // Adds the change to the device's implicit memory.
  void change_implicit(DeviceOrdinal, const ImplicitChange&) noexcept;
  // Returns the bytes that contexts of the device gave back and that no launch has taken again.
  std::uint64_t lent_context_bytes(DeviceOrdinal) noexcept;

 private:
  // Returns the device's row, which is made if there is none. The caller holds the lock.
  Device* row(DeviceOrdinal) noexcept;

  Storage& storage_;
  const ProcessTime& time_;
  FutexLock lock_;
};

}  // namespace cuwarden::ledger
