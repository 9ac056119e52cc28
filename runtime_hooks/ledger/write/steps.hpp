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

// Returns the part of a step's name that is kept: longest_step_name bytes at most, without a part
// of a character.
std::string_view kept_step_name(std::string_view name) noexcept;

// Counts the program's steps, and stores when they began. All threads may call the function at any
// time.
class Steps {
 public:
  // `storage`: the memory of the ledger; `time`: its clock. Both must outlive the object.
  Steps(Storage& storage, ProcessTime& time) noexcept : storage_(storage), time_(time) {}
  // Counts steps that were marked before there was a ledger. If no step has a row yet, the last of
  // them gets one, with its name.
  void add(const EarlierSteps&) noexcept;
  // Counts a step that begins now and ends where the next one begins, and stores its time and its
  // name if it has a row by StepMark's rule. Without room for the row, the step is counted only.
  // `name`: kept as kept_step_name() says; empty: none. A step with a name ends the name of an
  // earlier one, and a step without a name does not.
  void begin(std::string_view name = {}) noexcept;
  // Ends the part of the run that has the name of the last step with a name.
  void end_name() noexcept;

 private:
  // Sets the end of the last name to `time_ns`, in ns since process start.
  void end_name_at(std::uint64_t time_ns) noexcept;
  // Stores the mark of a step. `number`: the step's number, from 1. `time_ns`: its start, in ns
  // since process start. `name`: its name; empty: none. Stores nothing if the table has no room.
  void store(std::uint64_t number, std::uint64_t time_ns, std::string_view name) noexcept;

  Storage& storage_;             // the memory of the ledger, with its tables
  ProcessTime& time_;            // clock of the ledger's times
  FutexLock lock_;               // held while a step is counted
  std::uint64_t last_ = 0;       // number of the last step with a row; 0: none
  std::uint64_t named_row_ = 0;  // row of the last step with a name that has not ended; 0: none
};

}  // namespace cuwarden::ledger
