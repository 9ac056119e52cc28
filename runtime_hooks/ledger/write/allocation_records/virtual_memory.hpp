// Records of virtual memory: CUmemGenericAllocationHandles and their mappings. A handle's bytes are
// live until its references and its mappings are both gone; a mapping's own record counts no bytes.
//
// One lock serves all calls, which is cheap beside the microseconds that the driver's own functions
// take. A record that release_begin() or unmap_begin() has ended is remembered for a while. So
// release_undo() or unmap_undo() can restore it exactly if the driver refuses.
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
// (LedgerLocked), a function does nothing, and returns false. If there is no room for a record, it
// is not added (reason_ledger_full).
class VirtualMemory {
 public:
  // The arguments are parts of one ledger's writer, which the object uses and does not own. They
  // must outlive it.
  VirtualMemory(Storage& storage, RecordIndex& records, Totals& totals, Threads& threads,
                const ProcessTime& time) noexcept
      : storage_(storage), records_(records), totals_(totals), threads_(threads), time_(time) {}

  // Adds the record of a virtual memory handle that was created (cuMemCreate) or imported. The
  // handle gets one reference. An older record with this handle loses all its references, because
  // the release of that handle was not seen (reason_superseded). Does nothing if the group is 0.
  void created(NewRecord) noexcept;
  // Counts a reference that cuMemRetainAllocationHandle made. `mapped`: the address that the
  // program passed. `handle`: the handle that the driver returned, which may be a new value for the
  // memory mapped there. Returns false, and records nothing, if neither the handle nor a mapping
  // around the address has a usable record, or if there is no room.
  bool retained_from_mapping(DeviceAddress mapped, DeviceAddress handle) noexcept;
  // Counts one reference less to the virtual memory handle. The record ends if this was the last
  // reference and the memory has no mapping. Must be called before the driver's cuMemRelease, after
  // which another handle may get this handle's value. If the driver refuses, the caller calls
  // release_undo(). Returns false, and changes nothing, if the handle has no record.
  bool release_begin(DeviceAddress handle) noexcept;
  // Undoes a call of release_begin() that returned true, because the driver refused the release:
  // adds the reference again that the call took from the handle. `handle`: the argument of that
  // call. Must not be called if release_begin() returned false: the handle might get a reference
  // too many.
  void release_undo(DeviceAddress handle) noexcept;
  // Adds the record of a mapping (cuMemMap) of `handle` at `address`. `bytes`: size of the mapping.
  // `group`: group of the mapping; 0: none. Ends the record of an older mapping at `address`. If
  // the handle's size is not known because it was imported, the handle's record gets the mapping's
  // size.
  void mapped(DeviceAddress address, ByteCount bytes, DeviceAddress handle, GroupId group) noexcept;
  // Ends the records of all mappings that begin in [from, from + bytes). Must be called before the
  // driver's cuMemUnmap. If the driver refuses, the caller calls unmap_undo(). Returns false if no
  // mapping that begins in the range has a record.
  bool unmap_begin(DeviceAddress from, ByteCount bytes) noexcept;
  // Undoes a call of unmap_begin() that returned true, because the driver refused to unmap: makes
  // the mappings' records live again. Leaves out mappings whose address is in use again. The
  // arguments equal those of that call. Must not be called if unmap_begin() returned false: an
  // earlier, ended mapping might become live again.
  void unmap_undo(DeviceAddress from, ByteCount bytes) noexcept;

 private:
  // A change of a handle's or mapping's record that may still have to be undone. release_begin()
  // and unmap_begin() make such changes. created() and mapped() make some, too, if they end an
  // older record. Each of these calls first forgets all but the newest 4096 changes. When a change
  // is forgotten, the row of the record that it ended becomes free for another record.
  struct Pending {
    std::uint32_t row;  // row of the changed record in the ledger's table of records
    bool ended;         // true if the change ended the record, and was not undone
    bool released;      // true if the change removed a handle's last reference, and was not undone
    bool unmapped;      // true if the change ended the record of a mapping, and was not undone
    // Number of the call that made the change (`operation_`); equal for all changes of one call.
    std::uint64_t operation;
    // If `released` is true, the handle. If `unmapped` is true, the start of the range that
    // unmap_begin() was given; 0 if mapped() replaced the mapping. Otherwise 0.
    std::uint64_t address;
    // Size of the range that unmap_begin() was given. 0 unless `unmapped` is true, and 0 if
    // mapped() replaced the mapping.
    std::uint64_t bytes;
  };

  // Returns the allocation record in this row of the ledger.
  Record& row(RecordId id) const noexcept { return records_.row(id); }
  // Returns the record that counts the bytes of this handle's memory. It is the handle's own
  // record; for a second handle of the memory, it is the first handle's record. Returns 0 if
  // `handle` is 0.
  RecordId underlying(RecordId handle) const noexcept;
  // Returns the record of the mapping that contains the address; 0 if there is none.
  RecordId mapping_around(DeviceAddress) noexcept;
  // Counts one reference less to a handle, and ends the handle's record if it has neither
  // references nor mappings then. `key_is_gone`: true if hide() has removed the record from the
  // index; all references end then. `operation`: number of the public call under way
  // (Pending::operation). `now_ns`: present time since process start.
  void drop_reference(RecordId, bool key_is_gone, std::uint64_t operation,
                      std::uint64_t now_ns) noexcept;
  // Counts one mapping (or second handle) less of the handle's memory, and ends the handle's record
  // if it has neither references nor mappings then. `operation`: number of the public call under
  // way (Pending::operation). `now_ns`: present time since process start.
  void drop_mapping(RecordId handle, std::uint64_t operation, std::uint64_t now_ns) noexcept;
  // Ends the handle's record if it has neither references nor mappings. If the record has ended or
  // its last reference was released, remembers the change as `Pending`. `now_ns`: present time
  // since process start.
  void end_if_unused(RecordId handle, Pending, std::uint64_t now_ns) noexcept;
  // Stores the size of a handle's memory, which was not known before, and counts it in the group.
  // `now_ns`: present time since process start.
  void learn_size(RecordId handle, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  // Makes the ended record of a handle live again, and counts its allocation again. The latest
  // remembered change (Pending) that ended the record no longer counts as ending it. `now_ns`:
  // present time since process start.
  void revive(RecordId, std::uint64_t now_ns) noexcept;
  // Ends the record of a mapping, and remembers this change as a Pending. `operation`: number of
  // the public call under way. `address`, `bytes`: the range that unmap_begin() was given; both 0
  // if mapped() replaces the mapping. `now_ns`: present time since process start.
  void take_mapping(RecordId, std::uint64_t operation, std::uint64_t address, std::uint64_t bytes,
                    std::uint64_t now_ns) noexcept;

  // Adds a change of a record to `pending_`, the ring of changes that may have to be undone. If
  // there is no memory for a larger ring, forgets the oldest change.
  void remember(const Pending&) noexcept;
  // Forgets the oldest changes of records in the ring `pending_`, until at most 4096 are left.
  void trim() noexcept;
  // Returns the entry of the ring `pending_` for the change with this sequence number. `sequence`
  // must be in [oldest_, newest_).
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
  std::uint64_t newest_ = 0;            // sequence number that the next change gets
  // Number of the last call that ended references or mappings, or looked for some; 0: none has yet.
  std::uint64_t operation_ = 0;
  std::uint64_t live_mappings_ = 0;  // number of mappings with a live record
  // `step_`: largest power of two that divides the addresses of all recorded mappings (cuMemMap) so
  // far. `largest_mapping_`: size of the largest recorded mapping so far. Both in bytes; 0 before
  // the first mapping.
  std::uint64_t step_ = 0, largest_mapping_ = 0;
};

}  // namespace cuwarden::ledger
