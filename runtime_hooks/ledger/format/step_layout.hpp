// Marks of the program's steps in the ledger, such as iterations of a training loop.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::ledger {

// The start of a step that the program marked (cuwarden_step()). The first exact_steps steps each
// have a row. A later step has one if its number exceeds that of the last row by a share of
// 1 / exact_steps. So any number of steps needs few rows.
struct StepMark {
  std::atomic<std::uint32_t> state;  // 1: readers may use the row
  std::uint32_t reserved;
  std::uint64_t number;   // number of the step, from 1
  std::uint64_t time_ns;  // start of the step since process start, exact to some ms
};

// Number of steps from the first on that each have a row. See StepMark.
inline constexpr std::uint64_t exact_steps = 256;

}  // namespace cuwarden::ledger
