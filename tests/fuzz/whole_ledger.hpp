// A ledger with at least one row in each table, made by this build's writer. So changes to its
// tables stay meaningful when a new version of the layout moves them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuwarden::test {

// Returns the bytes of a ledger with at least one row in each table. It is as small as a ledger can
// be.
std::vector<std::byte> whole_ledger();

// Bits of the byte with which the input of ledger_fuzz begins. `as_it_comes`: the rest of the input
// is the ledger itself; otherwise it is a list of changes to a whole ledger. `mend_header`: the
// header is made valid after the changes. `cut_short`: four bytes before the changes say at which
// length the ledger is cut. `with_names`, all its bits: functions are named. Chance sets several
// bits seldom, and names take a hundred times as long as the rest.
enum FuzzMode : std::uint8_t { as_it_comes = 1, mend_header = 2, cut_short = 4, with_names = 0xf8 };

// One change: eight bytes that are written to an offset in the used part of a region. A region
// number one above the last one means the header; 255 means anywhere in the file.
struct [[gnu::packed]] FuzzChange {
  // Offset of the change within the used part of the region.
  std::uint32_t offset : 24;
  // Number of the region that is changed. The number above the last region's means the header; 255
  // means the whole file.
  std::uint32_t region : 8;
  // The eight bytes that are written to the offset.
  std::uint64_t value;
};
static_assert(sizeof(FuzzChange) == 12);

}  // namespace cuwarden::test
