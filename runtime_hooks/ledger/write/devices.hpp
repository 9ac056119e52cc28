// Writes the ledger's devices table: names, readings of memory, figures of cuwarden's pool, and
// implicit memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/device_layout.hpp"
#include "runtime_hooks/ledger/format/implicit_bytes.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// A reading of a device's memory: the driver's figures at one moment.
struct Reading {
  ReadingAt at = ReadingAt::never;  // occasion of the reading; `never`: there was none
  std::uint64_t total_bytes = 0, free_bytes = 0;  // size and free bytes of the device's memory
  // Bytes of the device that this process's memory pools (CUmemoryPool) and graphs hold without an
  // allocation in them; null: unknown.
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  // Bytes of the device that live allocations of this process take, as Totals::taken_on() returns
  // them.
  std::uint64_t allocated_bytes = 0;
};

// A change of a device's implicit memory. The driver takes such memory for contexts, code, local
// memory of kernels, the heap of malloc() in kernels, streams and executable graphs. Each field
// says how Devices::change_implicit() changes the device's numbers. Most fields are signed, and are
// added. No number falls below 0.
struct ImplicitChange {
  // True if this process has no context on the device any more. All numbers of the device's
  // implicit memory are then set to 0 before the other fields are added.
  bool contexts_ended = false;
  // Bytes of the device that were in use just after this process made its first context there.
  // Other processes' memory is included, this process's recorded allocations are not. Replaces the
  // device's number; 0: the number stays.
  std::uint64_t used_after_first_context_bytes = 0;
  // Bytes that the driver took for contexts other than the process's first one on the device;
  // negative: it gave them back.
  std::int64_t context_bytes = 0;
  // Bytes that the driver took for code (modules); negative: it gave them back.
  std::int64_t module_bytes = 0;
  // Bytes that the driver took for local memory of kernels; negative: it gave them back.
  std::int64_t local_memory_bytes = 0;
  // Bytes that the driver took for the heap of malloc() in kernels; negative: it gave them back.
  std::int64_t heap_bytes = 0;
  // Bytes that the driver took for streams; negative: it gave them back.
  std::int64_t stream_bytes = 0;
  // Bytes that the driver took for executable graphs; negative: it gave them back.
  std::int64_t graph_bytes = 0;
  // Bytes that the driver gave back to the device from implicit memory of unknown kind. They are
  // subtracted from the bytes of local memory. If these are too few, the rest is subtracted from
  // code, then from further contexts, then from the first context.
  std::uint64_t given_back_bytes = 0;
  // Bytes that a kernel launch has taken for contexts again, after the driver had given them back
  // (`given_back_bytes`). They are added to the contexts' bytes; at most
  // Devices::lent_context_bytes().
  std::uint64_t taken_again_bytes = 0;
  // Bytes that the driver gave back when one context ended while others of the device remain. They
  // are subtracted from the bytes of further contexts. If these are too few, the rest is subtracted
  // from local memory, code, heap, streams and executable graphs, in this order.
  std::uint64_t one_ended_bytes = 0;
  // True if the process's first context on the device has ended. Its bytes
  // (used_after_first_context in ImplicitBytes) are then set to 0.
  bool first_ended = false;
  // Bytes of local memory for one thread of a launched kernel, if the kernel needs more than all
  // kernels before it in its context; otherwise 0.
  std::uint64_t largest_local_bytes = 0;
  // Mangled name of the kernel that needs largest_local_bytes; empty: unknown.
  // Devices::change_implicit() copies the name's first 1024 bytes.
  std::string_view largest_local_kernel{};
};

// Result of Devices::change_implicit(): changes of three numbers in the device's row. Each member
// is the new value less the old one, in bytes; negative: the value fell.
struct ImplicitEffect {
  std::int64_t context_bytes = 0;       // contexts after the first one
  std::int64_t local_memory_bytes = 0;  // memory for the local variables of kernels
  std::int64_t heap_bytes = 0;          // the heap from which malloc() in kernels takes memory
};

// Keeps the rows of the ledger's devices table. A device gets its row at the first call for it, and
// readers see the row once identify() was called. All threads may call the functions at any time.
// If the table has no room for a device's row (reason_names_missing) or the lock cannot be had
// (reason_recording_stopped), the functions do nothing and return 0.
class Devices {
 public:
  // `storage`: the memory of the ledger. `time`: clock of the ledger's times. Both must outlive the
  // object.
  Devices(Storage& storage, const ProcessTime& time) noexcept : storage_(storage), time_(time) {}

  // Stores copies of the device's name (its first 127 bytes) and UUID. Only the first call for a
  // device has an effect. An empty name or a UUID of zeros means unknown.
  void identify(DeviceOrdinal, std::string_view name, const std::uint8_t (&uuid)[16]) noexcept;
  // Stores a reading of the device's memory, with the present time, in place of the device's last
  // reading.
  void note_reading(DeviceOrdinal, const Reading&) noexcept;
  // Stores how many bytes of the device other processes use, in place of the number stored before.
  void set_other_processes(DeviceOrdinal, ByteCount) noexcept;
  // Counts a new spilled allocation (one that is partly or wholly in host memory) of this kind on
  // the device. `in_host`: bytes of the allocation that are in host memory.
  void spilled(DeviceOrdinal, Kind, ByteCount in_host) noexcept;
  // Subtracts a freed allocation's bytes in host memory from the device's spilled bytes. The
  // arguments equal those that spilled() was given for the allocation.
  void unspilled(DeviceOrdinal, Kind, ByteCount in_host) noexcept;
  // Returns how many bytes of the device's live spilled allocations are in host memory at present.
  // Returns 0, too, if the ledger's lock cannot be had or the ledger has no room for the device.
  std::uint64_t spilled_bytes_on(DeviceOrdinal) noexcept;
  // Returns how many bytes of the device's live spilled stream-ordered allocations
  // (cuMemAllocAsync) are in host memory at present. Returns 0, too, if the ledger's lock cannot be
  // had or the ledger has no room for the device.
  std::uint64_t spilled_in_stream_order_on(DeviceOrdinal) noexcept;
  // Stores the present figures of cuwarden's pool on the device, in place of those stored before.
  void set_arena(DeviceOrdinal, const ArenaUse&) noexcept;
  // Adds the change to the numbers of the device's implicit memory. If the change's kernel needs
  // more local memory than all kernels before, stores the kernel's need and name. Returns by how
  // many bytes three of the numbers have changed.
  ImplicitEffect change_implicit(DeviceOrdinal, const ImplicitChange&) noexcept;
  // Returns the numbers of the device's implicit memory; all 0 if none was measured.
  ImplicitBytes implicit_bytes(DeviceOrdinal) noexcept;
  // Returns the bytes of the device's contexts that the driver gave back to the device, because it
  // lacked memory, and that no kernel launch has taken again since.
  std::uint64_t lent_context_bytes(DeviceOrdinal) noexcept;

 private:
  // Returns the device's row, and makes it at the first call for the device. Returns null, and adds
  // reason_names_missing to the ledger, if the table is full. The caller holds lock_.
  Device* row(DeviceOrdinal) noexcept;

  Storage& storage_;         // the memory of the ledger, with its tables
  const ProcessTime& time_;  // the clock of the ledger's times
  FutexLock lock_;           // held while a function of this class uses the rows
};

}  // namespace cuwarden::ledger
