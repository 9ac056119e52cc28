#pragma once

#include <cstdint>

namespace cuwarden::ledger {

// A reference to a text in the ledger's strings region (RegionId::strings).
struct StringRef {
  std::uint32_t offset = 0;  // bytes from the start of the region; 0 for an empty text
  std::uint32_t length = 0;  // length of the text in bytes; no terminating zero follows
};

}  // namespace cuwarden::ledger
