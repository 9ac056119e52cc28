// The steps that a program has marked, such as iterations of a training loop, as a ledger has them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reporters/model/process.hpp"
#include "reporters/model/put.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Finds out in which step of the program (such as an iteration of a training loop) something
// happened. The ledger has marks of the beginnings of steps: of the first ledger::exact_steps
// steps, of all steps with names, and of some others.
class StepMarks {
 public:
  // Reads the ledger's marks of steps. Marks of a damaged ledger that contradict earlier ones are
  // left out.
  explicit StepMarks(const ledger::Reader&);

  // Returns the number of steps that have begun; 0: the program marked none.
  std::uint64_t count() const { return count_; }
  // Returns the number of the step that was the last to begin at or before a time, in ns since the
  // process's start; 0: none had begun. Exact for the first ledger::exact_steps steps; for later
  // ones too low by at most 1 / exact_steps of the number.
  std::uint64_t at(std::uint64_t time_ns) const;
  // Returns the estimated end of the last step: its start plus the mean length of the earlier
  // steps, in ns since the process's start. 0: fewer than two steps were marked.
  std::uint64_t end_ns() const;
  // Returns the name of the named step that was under way at a time, in ns since the process's
  // start. Empty: none was. The text points into the ledger.
  std::string_view name_at(std::uint64_t time_ns) const;
  // True if the program gave at least one of its steps a name.
  bool have_names() const { return !named_.empty(); }
  // Passes the report's row of each mark of a step to the callback `Put`.
  void put_steps(Put<model::Step>) const;
  // True if the program still marked steps at a time, in ns since the process's start: the last
  // step had begun at most about four mean lengths of a step before. False if fewer than two steps
  // were marked.
  bool cover(std::uint64_t time_ns) const;

 private:
  // Returns the mean length of a step in ns; 0: fewer than two steps were marked.
  std::uint64_t usual_ns() const;
  std::vector<ledger::StepMarkView> marks_;  // marks, in the order of their numbers and times
  std::uint64_t count_ = 0;                  // number of steps that have begun
  std::vector<ledger::StepMarkView> named_;  // marks with a name, in the order of their times
};

}  // namespace cuwarden
