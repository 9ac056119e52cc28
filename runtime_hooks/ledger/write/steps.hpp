// The ledger's table of steps: parts of the program's work that repeat, such as iterations of a
// training loop. The program marks the beginning of each step.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/storage/process_time.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Steps (parts of its work that repeat) that the program marked before recording began.
struct EarlierSteps {
  // Number of steps that were marked before recording began; 0: none.
  std::uint64_t count = 0;
  // Beginning of the last step that was marked before recording began: time of CLOCK_MONOTONIC
  // in nanoseconds. Without meaning if `count` is 0.
  std::uint64_t last_monotonic_ns = 0;
  // Name of the last step that was marked before recording began; empty: it has none. The text
  // is not owned.
  std::string_view last_name;
};

// Returns the part of a step's name that the ledger keeps: its first 255 bytes (longest_step_name),
// less a last UTF-8 character that would be incomplete.
std::string_view kept_step_name(std::string_view name) noexcept;

// Counts the program's steps, and stores when they began. A step is a part of the work that
// repeats, such as an iteration. All threads may call the functions at any time.
class Steps {
 public:
  // `storage`: the memory of the ledger; `time`: its clock. Both must outlive the object.
  Steps(Storage& storage, ProcessTime& time) noexcept : storage_(storage), time_(time) {}
  // Counts steps that were marked before recording began. If the table has no row of a step
  // yet, stores a row for the last of these steps, with its name.
  void add(const EarlierSteps&) noexcept;
  // Counts a step that begins now; it ends when the next step begins. A step gets a row if it has a
  // name or is one of the first 256. Any other step gets a row if its number is 1/256 above that of
  // the last stored step. If the table has no room for the row, only counts the step. `name`: name
  // of the step, kept as kept_step_name() says; empty: none. The last eighth of the table is for
  // steps without names: a step then loses its name (reason_names_missing). A step with a name ends
  // the named part of the run before it. A step without a name belongs to that part.
  void begin(std::string_view name = {}) noexcept;
  // Ends the named part of the run, which began with the last step that has a name. Later steps
  // without a name do not belong to that part.
  void end_name() noexcept;

 private:
  // Stores `time_ns` (in ns since process start) as the end of the named part of the run. Does
  // nothing if no such part is open.
  void end_name_at(std::uint64_t time_ns) noexcept;
  // Stores a row for a step. `number`: the step's number, from 1. `time_ns`: start of the step, in
  // ns since process start. `name`: name of the step; empty: none. Stores nothing if the table has
  // no room.
  void store(std::uint64_t number, std::uint64_t time_ns, std::string_view name) noexcept;

  Storage& storage_;        // the memory of the ledger, with its tables
  ProcessTime& time_;       // clock of the ledger's times
  FutexLock lock_;          // held while a step is counted
  std::uint64_t last_ = 0;  // number, from 1, of the last step that has a row; 0: none has one
  // Row of the last step with a name, which began a named part of the run. 0: no step had a name,
  // or the part has ended.
  std::uint64_t named_row_ = 0;
};

}  // namespace cuwarden::ledger
