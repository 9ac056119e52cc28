// A range of addresses in code.
#pragma once

#include <cstdint>

namespace cuwarden {

// Addresses from `start` on, below `end`. A default-constructed range is empty.
struct CodeRange {
  std::uint64_t start = 0, end = 0;
  constexpr bool contains(std::uint64_t address) const noexcept {
    return address >= start && address < end;
  }
};

}  // namespace cuwarden
