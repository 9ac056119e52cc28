// Marks of the program's steps in the ledger, such as iterations of a training loop.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// The start of a step that the program marked (cuwarden_step()). The first exact_steps (256) steps
// each have a row, and so has each step with a name. Any other step has a row if its number is at
// least 1/256 higher than that of the last row. So any number of steps without names needs few
// rows.
struct StepMark {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t reserved;
  std::uint64_t number;   // number of the step among all that were marked, from 1
  std::uint64_t time_ns;  // start of the step, in ns since process start
  StringRef name;         // name that the program gave the step; empty: none
  // End of the part of the run to which the name applies, in ns since process start; 0: it has not
  // ended, or the step has no name. A later step with a name ends that part; a later step without a
  // name does not.
  std::atomic<std::uint64_t> name_end_ns;
};

// Number of steps at the beginning of the run that each have a row of type StepMark. Later steps
// without a name have rows only now and then.
inline constexpr std::uint64_t exact_steps = 256;
// Most bytes of a step's name in the ledger; a longer name is cut.
inline constexpr std::uint64_t longest_step_name = 255;
// One in this many rows of the table of steps is reserved for steps without a name.
inline constexpr std::uint64_t share_of_nameless_steps = 8;

}  // namespace cuwarden::ledger
