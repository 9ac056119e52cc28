// The ledger's table of steps: parts of the program's work that repeat, such as iterations of a
// training loop. The program marks where each begins.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Steps that the program marked before there was a ledger.
struct EarlierSteps {
  std::uint64_t count = 0;  // number of the steps; 0: there were none
  // Time at which the last of these steps began (tick_ns()).
  std::uint64_t last_monotonic_ns = 0;
  std::string_view last_name;  // name of the last of these steps; empty: it has none
};

// Counts the program's steps, and stores when they began. All threads may call the function at any
// time.
class Steps {
 public:
  // `storage`: the memory of the ledger; `time`: its clock. Both must outlive the object.
  Steps(Storage& storage, ProcessTime& time) noexcept : storage_(storage), time_(time) {}
  // Counts a step that begins now and ends where the next one begins, and stores its time and its
  // name (empty: none; cut after longest_step_name bytes) if it has a row by StepMark's rule.
  // Without room for the row, the step is counted only. Also counts `earlier` steps; if no step has
  // a row yet, the last of them gets one.
  void begin(std::string_view name = {}, const EarlierSteps& earlier = {}) noexcept;

 private:
  // Stores the mark of a step. `number`: the step's number, from 1. `time_ns`: its start, in ns
  // since process start. `name`: its name; empty: none. Stores nothing if the table has no room.
  void store(std::uint64_t number, std::uint64_t time_ns, std::string_view name) noexcept;

  Storage& storage_;            // the memory of the ledger, with its tables
  ProcessTime& time_;           // clock of the ledger's times
  FutexLock lock_;              // held while a step is counted
  std::uint64_t last_ = 0;      // number of the last step with a row; 0: none
  bool last_has_name_ = false;  // true if the last step with a row has a name
};

}  // namespace cuwarden::ledger
