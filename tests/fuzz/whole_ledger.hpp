// A ledger with at least one row in each table, for the fuzzer of ledgers. This build's writer
// makes it, so that recorded changes to its tables fit a later layout, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuwarden::test {

// Returns the bytes of a ledger with at least one row in each table, in a file of the smallest
// possible size.
std::vector<std::byte> whole_ledger();

// Bits of the first byte of an input of ledger_fuzz. `as_it_comes`: the rest of the input is the
// ledger itself; otherwise it is a list of changes to whole_ledger(). `mend_header`: the header is
// made valid after the changes. `cut_short`: the four bytes before the changes are the length to
// which the ledger is cut. `with_names`: if all of these bits are set, functions are named. This
// takes a hundred times as long as the rest, so random inputs must seldom have it.
enum FuzzMode : std::uint8_t { as_it_comes = 1, mend_header = 2, cut_short = 4, with_names = 0xf8 };

// One change of the ledger: eight bytes that are written to an offset in the used part of a region.
struct [[gnu::packed]] FuzzChange {
  // Offset of the change within the used part of the region.
  std::uint32_t offset : 24;
  // Number of the region (RegionId) that is changed; the number after the last region: the header;
  // 255: the whole file.
  std::uint32_t region : 8;
  // The eight bytes that are written to the offset.
  std::uint64_t value;
};
static_assert(sizeof(FuzzChange) == 12);

}  // namespace cuwarden::test
