// Rows of the ledger's threads table: each thread that makes a recorded call has one, with its
// number and its name.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::ledger {

// Gives each thread of the process its row in the ledger's threads table.
class Threads {
 public:
  // The arguments are parts of one ledger's writer, which the object uses and does not own. They
  // must outlive it.
  Threads(Storage& storage, ThreadShards& thread_shards, const ProcessTime& time) noexcept
      : storage_(storage), thread_shards_(thread_shards), time_(time) {}

  // Returns the calling thread's row in the threads table, and makes the row if the thread has
  // none. Returns 0, and adds reason_names_missing to the ledger, if the table is full or cannot
  // grow. Returns 0, too, if the thread has no row yet and a seccomp filter confines it.
  ThreadId mine() noexcept {
    const std::uint32_t row = thread_shards_.my_row();
    if (row == 0) return add_mine();
    return ThreadId{row == ThreadShards::no_row ? 0 : row};
  }
  // Returns the calling thread's row in the threads table; 0 if the thread has none yet. Makes no
  // system call.
  std::uint64_t known_row() const noexcept {
    const std::uint32_t row = thread_shards_.my_row();
    return row == ThreadShards::no_row ? 0 : row;
  }
  // Stores in the calling thread's row that a rung begins for a request of the thread. `bytes`:
  // size of the request; 0: the call does not say. `IncidentId`: the incident that counts the
  // request; 0: readers see no rung. Does nothing if the thread can have no row.
  void begin_rung(IncidentId, Rung, std::uint64_t bytes) noexcept;
  // Stores in the calling thread's row that the rung of its last begin_rung() has ended. Does
  // nothing if the thread has no row.
  void end_rung() noexcept;
  // Returns the number of rows in use in the threads table, including the reserved row 0.
  std::uint64_t rows() const noexcept { return storage_.used(RegionId::threads); }
  // Returns the calling thread's slot, a pair of numbers. ThreadSlot::number is a small number that
  // no other living thread has. ThreadSlot::tenancy counts the threads that have had this number so
  // far. Both are 0 for threads without a number of their own.
  ThreadSlot slot() noexcept { return thread_shards_.mine().slot(); }

 private:
  // Makes a row in the threads table for the calling thread, which has none. Returns the row; 0 if
  // there is no room, or if a seccomp filter confines the thread.
  ThreadId add_mine() noexcept;

  Storage& storage_;             // the memory of the ledger, with its tables
  ThreadShards& thread_shards_;  // each thread's own counters
  const ProcessTime& time_;      // the clock of the ledger's times
};

}  // namespace cuwarden::ledger
