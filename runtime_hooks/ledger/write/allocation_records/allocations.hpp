// Adds and ends the records of live allocations, and changes the ledger's counters accordingly.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_index.hpp"
#include "runtime_hooks/ledger/write/allocation_records/slab_pages.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

// Adds and ends the allocation records of one ledger, except those of virtual memory (class
// VirtualMemory). All threads may call the functions at any time.
class Allocations {
 public:
  // The arguments are parts of one ledger's writer, which the object uses and does not own. They
  // must outlive it.
  Allocations(Storage& storage, RecordIndex& records, Totals& totals, SlabPages& slabs,
              Threads& threads, const ProcessTime& time) noexcept
      : storage_(storage),
        records_(records),
        totals_(totals),
        slabs_(slabs),
        threads_(threads),
        time_(time) {}

  // Adds an allocation record to the ledger and counts the allocation in its group. Sets the
  // argument's `thread` to the calling thread, and its `time_ns` to the present time if it is 0. (A
  // copy of the argument would cost too much.) Does nothing if the argument's group is 0. Ends an
  // older record with this space and address, because the call that freed that allocation was not
  // seen (reason_superseded). If the ledger has no room for the record, the group does not count
  // the allocation, and reason_ledger_full is added.
  void add(NewRecord&) noexcept;
  // Adds an allocation record, as add(NewRecord&) does, that the caller has made for this call
  // alone.
  void add(NewRecord&& given) noexcept { add(given); }
  // Ends the allocation record of an address that the program is about to free, and counts the
  // free. Must be called before the driver's free, after which another thread may get the address.
  // The result converts to false if the address has no record. If the driver refuses the free, the
  // caller passes the result to put_back().
  TakenRecord take(Space, DeviceAddress) noexcept;
  // Undoes a call of take(), because the driver refused the free: makes the allocation live again,
  // and takes back the count of its free. If the caller has lowered the argument's bytes since
  // take(), only the bytes left become live; the others stay counted as freed. Does nothing if
  // take() found no record. The allocation stays counted as freed if its address has another record
  // by now (reason_superseded), or if there is no room (reason_ledger_full).
  void put_back(const TakenRecord&) noexcept;
  // Adds `bytes`, which may be 0, to the record of a live allocation that has turned out to be
  // larger. `CertaintyChange`: changes of the record's flags (RecordFlag bits and Reach) and of its
  // `difference`. Returns false, and changes nothing, if the address has no record.
  bool grow(Space, DeviceAddress, std::uint64_t bytes, CertaintyChange = {}) noexcept;
  // Changes the flags (RecordFlag bits and Reach) and the `difference` of a live allocation's
  // record. `time_ns`: time of the allocation, by which another record in the row is told. Returns
  // false, and changes nothing, if the row `RecordId` has no live record with that time.
  bool change_certainty(RecordId, std::uint64_t time_ns, CertaintyChange) noexcept;
  // Counts one more opening of memory that the program has already opened by an IPC handle. All
  // openings of the memory are one allocation, which ends with the last close. Returns false, and
  // changes nothing, if the address has no record that counts openings; the caller then adds a
  // record.
  bool opened_again(Space, DeviceAddress) noexcept;
  // Counts a close of memory that was opened by an IPC handle, if further openings remain. Returns
  // false, and changes nothing, if this is the last close or the address has no such record. The
  // caller then ends the record with take().
  bool closed_not_last(Space, DeviceAddress) noexcept;
  // Adds 1 to the ledger's number of frees of addresses that have no allocation record.
  void count_unknown_free() noexcept;
  // A function that release_context() and release() call for each record that they end. Its
  // arguments are the record's group, and its bytes, which may be bytes that another record counts.
  using Released = FunctionRef<void(GroupId, std::uint64_t bytes)>;
  // Ends the records of all memory that a context owned, after the context was destroyed. The
  // groups count this memory as released (Group::released_*), not as freed.
  void release_context(
      ContextId, Released released = [](GroupId, std::uint64_t) {}) noexcept;
  // Ends the record of this space and address, as release_context() does, if the context owned its
  // memory; otherwise does nothing.
  void release(Space, DeviceAddress, ContextId, Released) noexcept;

  // Returns the locked bytes of the device's linear memory: unused bytes in the driver's slabs (2
  // MiB units) that also hold a live allocation. The driver cannot give such slabs back. 0 if the
  // device has no linear memory. Small changes that threads made just now may be missing.
  std::uint64_t slab_locked_bytes_on(DeviceOrdinal) noexcept;

 private:
  // Ends the record in this row, if it is live and the context owns its memory. `now_ns`: present
  // time since process start.
  void release(RecordId, ContextId, Released, std::uint64_t now_ns) noexcept;

  Storage& storage_;         // the memory of the ledger, with its tables
  RecordIndex& records_;     // finds records by space and address
  Totals& totals_;           // counters of groups, and of all memory of one kind and device
  SlabPages& slabs_;         // contents of the driver's slabs (2 MiB units)
  Threads& threads_;         // rows of threads
  const ProcessTime& time_;  // the clock of the ledger's times
};

}  // namespace cuwarden::ledger
