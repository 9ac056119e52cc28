#pragma once

#include <cstdint>

namespace cuwarden::ledger {

// A text in the ledger's strings region.
struct StringRef {
  std::uint32_t offset = 0;  // from the start of the region; 0 is the empty string
  std::uint32_t length = 0;  // number of bytes; there is no terminating zero
};

}  // namespace cuwarden::ledger
