// Live allocations: their records, and all that is counted with them.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_fields.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_index.hpp"
#include "runtime_hooks/ledger/write/allocation_records/slab_pages.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

class Allocations {
 public:
  Allocations(Storage& storage, RecordIndex& records, Totals& totals, SlabPages& slabs,
              Threads& threads, const ProcessTime& time) noexcept
      : storage_(storage),
        records_(records),
        totals_(totals),
        slabs_(slabs),
        threads_(threads),
        time_(time) {}

  // Adds a live record, and counts the allocation. Sets the record's thread, and its time if that
  // is 0, in the argument itself, because a copy would cost too much.
  void add(NewRecord&) noexcept;
  void add(NewRecord&& given) noexcept { add(given); }
  // To be called before the driver's free. The totals drop at once.
  TakenRecord take(Space, DeviceAddress) noexcept;
  // Puts back what take() took, since the driver refused to free it.
  void put_back(const TakenRecord&) noexcept;
  // Memory that is opened several times is one allocation, and ends with the last close.
  // opened_again() returns false if no such record is open. closed_not_last() returns false for the
  // last close; then the record is to be taken.
  bool opened_again(Space, DeviceAddress) noexcept;
  bool closed_not_last(Space, DeviceAddress) noexcept;
  void count_unknown_free() noexcept;
  // Ends all records that the context owns, and counts them as released (Group::released_*).
  void release_context(ContextId) noexcept;

  // Returns the bytes of linear memory that slabs lock on the device. Threads add to it with a
  // delay.
  std::uint64_t slab_locked_bytes_on(DeviceOrdinal) noexcept;

 private:
  Storage& storage_;
  RecordIndex& records_;
  Totals& totals_;
  SlabPages& slabs_;
  Threads& threads_;
  const ProcessTime& time_;
};

}  // namespace cuwarden::ledger
