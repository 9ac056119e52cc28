// CUmemGenericAllocationHandles and their mappings. A handle's bytes are live until its references
// and its mappings are both gone; a mapping carries no bytes of its own.
//
// One lock serves all of it: the driver's own calls take microseconds here. The rows that a begin
// function removed are remembered for a while, so that its undo function can restore them exactly.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_index.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

class VirtualMemory {
 public:
  VirtualMemory(Storage& storage, RecordIndex& records, Totals& totals, Threads& threads,
                const ProcessTime& time) noexcept
      : storage_(storage), records_(records), totals_(totals), threads_(threads), time_(time) {}

  // Records a handle that was created or imported, with one reference.
  void created(NewRecord) noexcept;
  // Counts one more reference to the handle.
  void retained(DeviceAddress handle) noexcept;
  // Counts a reference that was made from a mapped address (cuMemRetainAllocationHandle); `handle`
  // may be a value that the memory did not have before. Returns false, and records nothing, if no
  // mapping is known at the address.
  bool retained_from_mapping(DeviceAddress mapped, DeviceAddress handle) noexcept;
  // release_begin() removes a reference; to be called before the driver's release. release_undo()
  // puts it back if the driver refused.
  bool release_begin(DeviceAddress handle) noexcept;
  void release_undo(DeviceAddress handle) noexcept;
  void mapped(DeviceAddress, ByteCount, DeviceAddress handle, GroupId) noexcept;
  // unmap_begin() removes the mappings in a range; to be called before the driver's unmap of it.
  // Returns false if no mapping is known there. unmap_undo() restores exactly the mappings that
  // unmap_begin() took.
  bool unmap_begin(DeviceAddress, ByteCount) noexcept;
  void unmap_undo(DeviceAddress, ByteCount) noexcept;

 private:
  // Something taken away. Rows of ended records are recycled when their entry falls out.
  struct Pending {
    std::uint32_t row;
    bool ended;     // this entry owns the row
    bool released;  // by release_begin: the handle's key left the index
    bool unmapped;  // by unmap_begin of [address, address + bytes)
    std::uint64_t operation, address, bytes;
  };

  Record& row(RecordId id) const noexcept { return records_.row(id); }
  RecordId underlying(RecordId handle) const noexcept;
  RecordId mapping_around(DeviceAddress) noexcept;
  void drop_reference(RecordId, bool key_is_gone, std::uint64_t operation,
                      std::uint64_t now_ns) noexcept;
  void drop_mapping(RecordId handle, std::uint64_t operation, std::uint64_t now_ns) noexcept;
  void end_if_unused(RecordId handle, Pending, std::uint64_t now_ns) noexcept;
  void learn_size(RecordId handle, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  void revive(RecordId, std::uint64_t now_ns) noexcept;
  void take_mapping(RecordId, std::uint64_t operation, std::uint64_t address, std::uint64_t bytes,
                    std::uint64_t now_ns) noexcept;

  void remember(const Pending&) noexcept;
  void trim() noexcept;
  Pending& pending(std::uint64_t sequence) noexcept {
    return static_cast<Pending*>(pending_.data())[sequence & (pending_capacity_ - 1)];
  }

  Storage& storage_;
  RecordIndex& records_;
  Totals& totals_;
  Threads& threads_;
  const ProcessTime& time_;
  FutexLock lock_;
  Mapping pending_;  // a ring of entries [oldest_, newest_)
  std::uint64_t pending_capacity_ = 0, oldest_ = 0, newest_ = 0;
  std::uint64_t operation_ = 0;
  std::uint64_t live_mappings_ = 0;
  // Every mapping starts at a multiple of step_, and none is larger than largest_mapping_.
  std::uint64_t step_ = 0, largest_mapping_ = 0;
};

}  // namespace cuwarden::ledger
