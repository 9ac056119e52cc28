// A small number that no other living thread of the process has.
#pragma once

#include <cstdint>

namespace cuwarden {

// A small number that one living thread has at a time.
struct ThreadSlot {
  static constexpr std::uint32_t count = 65;

  std::uint32_t number = 0;   // 1 to count - 1; 0 if no number was left for this thread.
  std::uint32_t tenancy = 0;  // Differs from that of all threads that had this number before.
};

}  // namespace cuwarden
