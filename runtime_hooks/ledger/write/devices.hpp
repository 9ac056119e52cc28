// The rows of devices in the ledger: names, readings of their memory, the pool's figures, and
// memory that calls took although they are no allocations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/implicit_bytes.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// A reading of a device's memory: the driver's figures at one moment.
struct Reading {
  ReadingAt at = ReadingAt::never;                // the occasion; `never`: no reading
  std::uint64_t total_bytes = 0, free_bytes = 0;  // size and free bytes of the device's memory
  // Bytes that this process's memory pools (CUmemoryPool) and graphs hold and that no allocation
  // has; null: unknown.
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  // Bytes of the device that live allocations of this process take: Totals::taken_on().
  std::uint64_t allocated_bytes = 0;
};

// Figures of cuwarden's pool on one device: the present ones, and totals since the process began.
struct ArenaUse {
  // Bytes of the device that cuwarden's pool holds now, and requested bytes of the live allocations
  // in the pool.
  std::uint64_t held_bytes = 0, live_bytes = 0;
  // Number and bytes of the requests that cuwarden's pool has served since the process began.
  std::uint64_t served_count = 0, served_bytes = 0;
  // Bytes that cuwarden's pool gave back to the device since the process began, by meshing, too.
  // Memory of contexts that ended does not count.
  std::uint64_t returned_bytes = 0;
  // Pages of addresses that meshing has moved to other memory, and pages whose own memory a moved
  // page came to share. A page counts again each time, so two that come to share memory count 2.
  std::uint64_t meshed_pages = 0;
  std::uint64_t meshed_bytes = 0;  // bytes that meshing gave back to the device
  std::uint64_t pause_ns = 0;      // time for which meshing paused the program
};

// A change of a device's implicit memory: memory that calls other than allocations take or give
// back, for contexts, code, local memory of kernels, the heap of malloc() in kernels, streams, and
// executable graphs.
// Devices::change_implicit() adds the fields to the device's numbers, or subtracts them. No number
// falls below 0.
struct ImplicitChange {
  // True if no context of the device is left: all numbers of its implicit memory are set to 0
  // before the other fields are added.
  bool contexts_ended = false;
  // Bytes of the device in use just after its first context came up, including other processes'
  // memory, but without this process's recorded allocations. Replaces the device's number. 0: not
  // measured by this change.
  std::uint64_t used_after_first_context_bytes = 0;
  // Bytes that the driver took for contexts after the first one; negative: it gave them back.
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
  // Bytes that the driver gave back to the device, without telling from what. They are subtracted
  // from local memory, then from code, from further contexts, and from the first one.
  std::uint64_t given_back_bytes = 0;
  // Bytes that a kernel launch took for contexts again, after an earlier given_back_bytes was
  // subtracted from the contexts' bytes; at most Devices::lent_context_bytes().
  std::uint64_t taken_again_bytes = 0;
  // Bytes that the end of one context gave back while other contexts of the device remain. They are
  // subtracted from the bytes of further contexts, then of local memory, code, heap, streams and
  // executable graphs.
  std::uint64_t one_ended_bytes = 0;
  // True if the device's first context has ended: the number of the bytes that were in use just
  // after it came up is set to 0.
  bool first_ended = false;
  // Bytes of local memory for one thread of a launched kernel, if the kernel needs more than all
  // kernels before in its context; otherwise 0.
  std::uint64_t largest_local_bytes = 0;
  // Mangled name of the kernel that needs largest_local_bytes; empty: unknown.
  // Devices::change_implicit() copies the name's first 1024 bytes.
  std::string_view largest_local_kernel{};
};

// The bytes by which a change altered numbers of a device's implicit memory: contexts after the
// first one, local memory of kernels, and the heap of malloc() in kernels.
struct ImplicitEffect {
  // Bytes by which the device's bytes for contexts rose; negative: they fell.
  std::int64_t context_bytes = 0;
  // Bytes by which the device's bytes for local memory of kernels rose; negative: they fell.
  std::int64_t local_memory_bytes = 0;
  // Bytes by which the device's bytes for the heap of malloc() in kernels rose; negative: they
  // fell.
  std::int64_t heap_bytes = 0;
};

// Keeps the rows of the ledger's devices table. A device gets its row at the first call for it, and
// readers see the row once identify() was called. All threads may call the functions at any time.
// Without room for a row (reason_names_missing), the functions do nothing and return 0.
class Devices {
 public:
  // `storage`: the memory of the ledger. `time`: clock of the ledger's times. Both must outlive the
  // object.
  Devices(Storage& storage, const ProcessTime& time) noexcept : storage_(storage), time_(time) {}

  // Stores copies of the device's name (its first 127 bytes) and UUID. Only the first call for a
  // device has an effect. An empty name and zeros stand for unknown.
  void identify(DeviceOrdinal, std::string_view name, const std::uint8_t (&uuid)[16]) noexcept;
  // Stores a reading of the device's memory (size and free bytes), with the present time. It takes
  // the place of the device's last reading.
  void note_reading(DeviceOrdinal, const Reading&) noexcept;
  // Stores the number of the device's bytes that other processes use, and forgets the last such
  // number.
  void set_other_processes(DeviceOrdinal, ByteCount) noexcept;
  // Counts a new spilled allocation (one that is partly or wholly in host memory) of this kind on
  // the device. `in_host`: bytes of the allocation that are in host memory.
  void spilled(DeviceOrdinal, Kind, ByteCount in_host) noexcept;
  // Takes the bytes of a spilled allocation from the device's spilled bytes, because the allocation
  // was freed. The arguments equal those that spilled() was given for the allocation.
  void unspilled(DeviceOrdinal, Kind, ByteCount in_host) noexcept;
  // Returns how many bytes of the device's live allocations are in host memory at the moment.
  std::uint64_t spilled_bytes_on(DeviceOrdinal) noexcept;
  // Returns how many bytes of the device's live stream-ordered allocations (cuMemAllocAsync) are in
  // host memory at the moment.
  std::uint64_t spilled_in_stream_order_on(DeviceOrdinal) noexcept;
  // Stores the present figures of cuwarden's pool on the device, and forgets the last ones.
  void set_arena(DeviceOrdinal, const ArenaUse&) noexcept;
  // Adds the change to the device's numbers of implicit memory, which the driver takes without an
  // allocation. If the change's kernel needs more local memory than all kernels before, stores the
  // kernel's need and name. Returns by how much the numbers changed that ImplicitEffect has.
  ImplicitEffect change_implicit(DeviceOrdinal, const ImplicitChange&) noexcept;
  // Returns the memory of the device that the driver took by itself; all 0 if the device has no
  // row.
  ImplicitBytes implicit_bytes(DeviceOrdinal) noexcept;
  // Returns the bytes of the device's contexts that the driver gave back while it refused a
  // request, and that no kernel launch has taken again.
  std::uint64_t lent_context_bytes(DeviceOrdinal) noexcept;

 private:
  // Returns the device's row, and makes it at the first call for the device; null, and
  // reason_names_missing is added, if the table is full. The caller holds lock_.
  Device* row(DeviceOrdinal) noexcept;

  Storage& storage_;         // the memory of the ledger, with its tables
  const ProcessTime& time_;  // the clock of the ledger's times
  FutexLock lock_;           // held while a function of this class uses the rows
};

}  // namespace cuwarden::ledger
