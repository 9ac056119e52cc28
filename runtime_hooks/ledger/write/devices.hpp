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

// What a device said of itself.
struct Reading {
  ReadingAt at = ReadingAt::none;
  std::uint64_t total_bytes = 0, free_bytes = 0;
  std::optional<std::uint64_t> memory_pool_idle_bytes;  // of this process
};

// What the pool that serves requests in the driver's stead has of a device, what of that was asked
// for and is live, and what it served and gave back ever; of that, by having so many pages share
// memory, and how long the program was paused for it.
struct ArenaUse {
  std::uint64_t held_bytes = 0, live_bytes = 0;
  std::uint64_t served_count = 0, served_bytes = 0, returned_bytes = 0;
  std::uint64_t meshed_pages = 0, meshed_bytes = 0, pause_ns = 0;
};

// What a call took from a device, or gave back, without having been asked for memory. Differences:
// no number of the device falls below 0.
struct ImplicitChange {
  bool contexts_ended = false;  // all of the device: first of all, everything is 0 again
  std::uint64_t used_after_first_context_bytes = 0;  // 0: leaves it as it is
  std::int64_t context_bytes = 0, module_bytes = 0, local_memory_bytes = 0, heap_bytes = 0,
               stream_bytes = 0;
  // Given back by nobody knows which: from local memory, then code, then the contexts.
  std::uint64_t given_back_bytes = 0;
  // Taken again of what contexts gave back; at most lent_context_bytes().
  std::uint64_t taken_again_bytes = 0;
  // Given back by the end of one of several contexts: from what further ones took, then from what
  // was made inside them.
  std::uint64_t one_ended_bytes = 0;
  // A kernel that needs more local memory a thread than any before; 0: there is none.
  std::uint64_t largest_local_bytes = 0;
  std::string_view largest_local_kernel{};  // empty: its name is not known
};

class Devices {
 public:
  Devices(Storage& storage, const ProcessTime& time) noexcept : storage_(storage), time_(time) {}

  // The device's name and UUID. Of one device, later calls change nothing.
  void identify(DeviceOrdinal, std::string_view name, const std::uint8_t (&uuid)[16]) noexcept;
  void note_reading(DeviceOrdinal, const Reading&) noexcept;
  void set_other_processes(DeviceOrdinal, ByteCount) noexcept;
  // An allocation on this device lies in the host's memory with that many bytes; and no more.
  void spilled(DeviceOrdinal, Kind, ByteCount) noexcept;
  void unspilled(DeviceOrdinal, Kind, ByteCount) noexcept;
  std::uint64_t spilled_bytes_on(DeviceOrdinal) noexcept;
  // Those of spilled_bytes_on() that were asked for in stream order.
  std::uint64_t spilled_in_stream_order_on(DeviceOrdinal) noexcept;
  // What the pool that serves requests in the driver's stead has on the device now.
  void set_arena(DeviceOrdinal, const ArenaUse&) noexcept;
  void change_implicit(DeviceOrdinal, const ImplicitChange&) noexcept;
  // What contexts of the device gave back that no launch has taken again.
  std::uint64_t lent_context_bytes(DeviceOrdinal) noexcept;

 private:
  // The device's row, made if need be. Under the lock.
  Device* row(DeviceOrdinal) noexcept;

  Storage& storage_;
  const ProcessTime& time_;
  FutexLock lock_;
};

}  // namespace cuwarden::ledger
