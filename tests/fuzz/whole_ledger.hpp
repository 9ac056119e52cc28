// A ledger with at least one row in each table, made by this build's writer. So changes to its
// tables stay meaningful when a new version of the layout moves them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuwarden::test {

// Returns the bytes of the ledger, which is as small as a ledger can be.
std::vector<std::byte> whole_ledger();

// Bits of the byte with which ledger_fuzz's input begins; changes to the ledger follow it.
// `with_names` consists of several bits, which chance sets seldom, because looking up names takes a
// hundred times as long as the rest.
enum FuzzMode : std::uint8_t { as_it_comes = 1, mend_header = 2, cut_short = 4, with_names = 0xf8 };

// One change: eight bytes that are written to an offset in the used part of a region. A region
// number one above the last one means the header; 255 means anywhere in the file.
struct [[gnu::packed]] FuzzChange {
  std::uint32_t offset : 24;
  std::uint32_t region : 8;
  std::uint64_t value;
};
static_assert(sizeof(FuzzChange) == 12);

}  // namespace cuwarden::test
