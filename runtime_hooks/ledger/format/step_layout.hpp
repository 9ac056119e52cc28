// Marks of the program's steps in the ledger, such as iterations of a training loop.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/string_ref.hpp"

namespace cuwarden::ledger {

// The start of a step that the program marked (cuwarden_step()). The first exact_steps steps each
// have a row, and so has each step with a name. Another step has a row if its number exceeds that
// of the last row by a share of 1 / exact_steps. So any number of steps without names needs few
// rows.
struct StepMark {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row; 0: not filled in yet
  std::uint32_t reserved;
  std::uint64_t number;   // number of the step, from 1
  std::uint64_t time_ns;  // start of the step since process start
  StringRef name;         // name that the program gave the step; empty: none
  // End of the part of the run that has the name, in ns since process start; 0: it has not ended.
  // Steps without names do not end it.
  std::atomic<std::uint64_t> name_end_ns;
};

// Number of steps from the first on that each have a row. See StepMark.
inline constexpr std::uint64_t exact_steps = 256;
// Bytes that a step's name can have.
inline constexpr std::uint64_t longest_step_name = 255;
// Share of the rows of the table of steps that only steps without a name can have: one in this
// many.
inline constexpr std::uint64_t share_of_nameless_steps = 8;

}  // namespace cuwarden::ledger
