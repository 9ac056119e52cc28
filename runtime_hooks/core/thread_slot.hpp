// A small number that no other living thread of the process has.
#pragma once

#include <cstdint>

namespace cuwarden {

// A small number by which a thread finds its entries in tables. One living thread of the process
// has it at a time. After the thread's end, another thread may get the number.
struct ThreadSlot {
  static constexpr std::uint32_t count = 65;  // Number of values of `number`, 0 included.

  std::uint32_t number = 0;  // 1 to count - 1; 0: the thread has no number of its own.
  // Number of threads that have had the thread's `number` so far, this one included; 0 if `number`
  // is 0. It tells the thread from earlier ones with an equal number.
  std::uint32_t tenancy = 0;
};

}  // namespace cuwarden
