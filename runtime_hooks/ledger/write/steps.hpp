// The ledger's table of steps: parts of the program's work that repeat, such as iterations of a
// training loop. The program marks where each begins.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Counts the program's steps, and stores when they began. All threads may call the function at any
// time.
class Steps {
 public:
  // `storage`: the memory of the ledger; `time`: its clock. Both must outlive the object.
  Steps(Storage& storage, const ProcessTime& time) noexcept : storage_(storage), time_(time) {}
  // Counts a step that begins now and ends where the next one begins, and stores its time if it has
  // a row by StepMark's rule. Without room for the row, the step is counted only.
  void begin() noexcept;

 private:
  Storage& storage_;         // the memory of the ledger, with its tables
  const ProcessTime& time_;  // clock of the ledger's times
  FutexLock lock_;           // held while a step is counted
  std::uint64_t last_ = 0;   // number of the last step with a row; 0: none
};

}  // namespace cuwarden::ledger
