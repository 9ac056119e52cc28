// A small number that no other living thread of the process has.
#pragma once

#include <cstdint>

namespace cuwarden {

// A small number that one living thread has at a time. After its end, another thread may get it.
struct ThreadSlot {
  static constexpr std::uint32_t count = 65;  // Numbers, including 0.

  std::uint32_t number = 0;  // 1 to count - 1; 0: the thread has no number of its own.
  // Tells the thread from earlier ones with this number: each thread that gets the number has a
  // tenancy that is larger by 1.
  std::uint32_t tenancy = 0;
};

}  // namespace cuwarden
