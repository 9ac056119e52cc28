#pragma once

#include <cstdint>

namespace cuwarden::ledger {

// Text in the strings region.
struct StringRef {
  std::uint32_t offset = 0;  // from the start of the region; 0 is the empty string
  std::uint32_t length = 0;  // bytes; no terminating zero
};

}  // namespace cuwarden::ledger
