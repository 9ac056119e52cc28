// A number that no other living thread has.
#pragma once

#include <cstdint>

namespace cuwarden {

struct ThreadSlot {
  static constexpr std::uint32_t count = 65;

  std::uint32_t number = 0;   // below `count`; 0: none was left for this thread
  std::uint32_t tenancy = 0;  // tells it from the threads that had this number before
};

}  // namespace cuwarden
