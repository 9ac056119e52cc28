// Records of virtual memory: CUmemGenericAllocationHandles and their mappings. A handle's bytes are
// live until its references and its mappings are both gone; a mapping carries no bytes of its own.
//
// One lock serves all calls: the driver's own functions take microseconds here. The records that
// release_begin() or unmap_begin() has ended are remembered for a while, so that release_undo() or
// unmap_undo() can restore them exactly if the driver refuses.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_index.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

// Adds and ends the records of virtual memory: of handles (CUmemGenericAllocationHandle) and of
// their mappings. All threads may call the functions at any time. If the lock cannot be had
// (LedgerLocked), a function does nothing, and returns false. A record for which there is no room
// is left out (reason_ledger_full).
class VirtualMemory {
 public:
  // The arguments are parts of one ledger's writer, which the object uses and does not own. They
  // must outlive it.
  VirtualMemory(Storage& storage, RecordIndex& records, Totals& totals, Threads& threads,
                const ProcessTime& time) noexcept
      : storage_(storage), records_(records), totals_(totals), threads_(threads), time_(time) {}

  // Adds the record of a virtual memory handle that was created (cuMemCreate) or imported. The
  // handle gets one reference. An older record of this handle loses its references, since its
  // release was not seen (reason_superseded). Does nothing if the group is 0.
  void created(NewRecord) noexcept;
  // Counts a reference that cuMemRetainAllocationHandle made for the address `mapped`. `handle`:
  // the handle that the driver returned, which may be a new value for the memory. Returns false,
  // and records nothing, if there is no record of the handle, and none of a mapping at the address
  // with that mapping's handle. Also returns false if there is no room.
  bool retained_from_mapping(DeviceAddress mapped, DeviceAddress handle) noexcept;
  // Counts one reference less to the virtual memory handle. The record ends if this was the last
  // reference and no mapping of the memory is left. Must be called before the driver's
  // cuMemRelease, after which another handle may get this one's value. If the driver refuses, the
  // caller calls release_undo(). Returns false, and changes nothing, if the handle has no record.
  bool release_begin(DeviceAddress handle) noexcept;
  // Adds the reference again that release_begin() removed from the handle, because the driver
  // refused the release.
  void release_undo(DeviceAddress handle) noexcept;
  // Adds the record of a mapping (cuMemMap) of `handle` at `address`. `group`: that of the mapping;
  // 0: none. Ends an older mapping at `address`. If the handle's size is not known because it was
  // imported, its record gets the mapping's size.
  void mapped(DeviceAddress address, ByteCount bytes, DeviceAddress handle, GroupId group) noexcept;
  // Ends the records of all mappings that begin in [from, from + bytes). Must be called before
  // the driver's cuMemUnmap; if the driver refuses, the caller calls unmap_undo(). Returns false if
  // no mapping that begins in the range has a record.
  bool unmap_begin(DeviceAddress from, ByteCount bytes) noexcept;
  // Makes the records of the mappings live again that unmap_begin() has ended, because the driver
  // refused to unmap them. Leaves out mappings whose address is in use again. The arguments equal
  // those of unmap_begin().
  void unmap_undo(DeviceAddress from, ByteCount bytes) noexcept;

 private:
  // A change by release_begin() or unmap_begin() that may still have to be undone. Only some
  // thousand changes are remembered. When the oldest one is forgotten, the row of its ended record
  // becomes free for another record.
  struct Pending {
    std::uint32_t row;        // row of the handle's or mapping's record
    bool ended;               // true if the change has ended the record
    bool released;            // true if release_begin() removed the last reference to the handle
    bool unmapped;            // true if unmap_begin() of [address, address + bytes) ended a mapping
    std::uint64_t operation;  // number of the call, equal for all changes of one call
    // The released handle; if `unmapped` is true, the start of the range that the call unmaps.
    std::uint64_t address;
    std::uint64_t bytes;  // size of the range that the call unmaps; 0 for a handle
  };

  // Returns the allocation record in this row of the ledger.
  Record& row(RecordId id) const noexcept { return records_.row(id); }
  // Returns the record that counts the bytes of this handle's memory: the handle's own one or, for
  // a second handle of the memory, the first handle's. 0 for 0.
  RecordId underlying(RecordId handle) const noexcept;
  // Returns the record of the mapping that contains the address; 0 if no recorded mapping does.
  RecordId mapping_around(DeviceAddress) noexcept;
  // Counts one reference less to a handle, and ends its record if it is unused then. `key_is_gone`:
  // true if hide() has removed the record from the index; all references end then. `operation`:
  // number of the call, for Pending.
  void drop_reference(RecordId, bool key_is_gone, std::uint64_t operation,
                      std::uint64_t now_ns) noexcept;
  // Counts one mapping (or second handle) less of the handle's memory, and ends the handle's record
  // if it is unused then. `operation`: number of the call, for Pending.
  void drop_mapping(RecordId handle, std::uint64_t operation, std::uint64_t now_ns) noexcept;
  // Ends the handle's record if it has neither references nor mappings. Remembers the change as
  // `Pending`, if the record has ended or its last reference was released.
  void end_if_unused(RecordId handle, Pending, std::uint64_t now_ns) noexcept;
  // Stores the size of a handle's memory, which was not known before, and counts it in the group.
  void learn_size(RecordId handle, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Makes a handle's record live again that a remembered change has ended. `now_ns`: present time
  // since process start.
  void revive(RecordId, std::uint64_t now_ns) noexcept;
  // Ends the record of a mapping, and remembers the change. `operation`: number of the call.
  // `address`, `bytes`: the range that the call unmaps.
  void take_mapping(RecordId, std::uint64_t operation, std::uint64_t address, std::uint64_t bytes,
                    std::uint64_t now_ns) noexcept;

  // Adds a change to the ring of changes that may have to be undone. Forgets the oldest one if
  // there is no memory.
  void remember(const Pending&) noexcept;
  // Forgets the oldest changes, until at most 4096 are remembered.
  void trim() noexcept;
  // Returns the remembered change with this sequence number, which is in [oldest_, newest_).
  Pending& pending(std::uint64_t sequence) noexcept {
    return static_cast<Pending*>(pending_.data())[sequence & (pending_capacity_ - 1)];
  }

  Storage& storage_;         // the memory of the ledger, with its tables
  RecordIndex& records_;     // finds records by space and address
  Totals& totals_;           // counters of groups, and of all memory of one kind and device
  Threads& threads_;         // rows of threads
  const ProcessTime& time_;  // the clock of the ledger's times
  FutexLock lock_;           // held during each call of a public function
  // A ring of the changes (Pending) that may have to be undone, with sequence numbers [oldest_,
  // newest_). Its capacity is a power of two.
  Mapping pending_;
  std::uint64_t pending_capacity_ = 0;  // number of changes for which pending_ has room
  std::uint64_t oldest_ = 0;            // sequence number of the oldest remembered change
  std::uint64_t newest_ = 0;            // sequence number of the next change
  std::uint64_t operation_ = 0;         // number of the last call that changed something
  std::uint64_t live_mappings_ = 0;     // number of mappings with a live record
  // step_: the largest power of two that divides the addresses of all mappings so far; 0 before the
  // first mapping. largest_mapping_: size of the largest mapping so far. Both in bytes.
  std::uint64_t step_ = 0, largest_mapping_ = 0;
};

}  // namespace cuwarden::ledger
