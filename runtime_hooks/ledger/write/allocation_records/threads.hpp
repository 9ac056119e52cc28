// The rows of threads: each thread that makes a call has one, with its number and its name.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::ledger {

class Threads {
 public:
  Threads(Storage& storage, ThreadShards& thread_shards, const ProcessTime& time) noexcept
      : storage_(storage), thread_shards_(thread_shards), time_(time) {}

  // Returns the calling thread's row, which is made if needed; 0 if there is no room, or if the
  // thread is confined.
  ThreadId mine() noexcept {
    const std::uint32_t row = thread_shards_.my_row();
    if (row == 0) return add_mine();
    return ThreadId{row == ThreadShards::no_row ? 0 : row};
  }
  // Returns the calling thread's row; 0 if the thread has none yet.
  std::uint64_t known_row() const noexcept {
    const std::uint32_t row = thread_shards_.my_row();
    return row == ThreadShards::no_row ? 0 : row;
  }
  // Returns the number of rows, with the unused row 0.
  std::uint64_t rows() const noexcept { return storage_.used(RegionId::threads); }
  ThreadSlot slot() noexcept { return thread_shards_.mine().slot(); }

 private:
  ThreadId add_mine() noexcept;

  Storage& storage_;
  ThreadShards& thread_shards_;
  const ProcessTime& time_;
};

}  // namespace cuwarden::ledger
