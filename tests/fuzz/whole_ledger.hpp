// A ledger with one of everything, as the writer of this build makes it: what is changed in it does
// not depend on where a version of the layout has its tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cuwarden::test {

// The file's bytes, in a file as small as a ledger can be.
std::vector<std::byte> whole_ledger();

// An input of ledger_fuzz is a byte of these, and then changes to the ledger. Names take a hundred
// times as long as the rest: they are asked for by several bits, which chance sets seldom.
enum FuzzMode : std::uint8_t { as_it_comes = 1, mend_header = 2, cut_short = 4, symbolise = 0xf8 };

// One change: eight bytes at a place, which is a region (one more: the header; 255: anywhere) and
// an offset in its used part.
struct [[gnu::packed]] FuzzChange {
  std::uint32_t offset : 24;
  std::uint32_t region : 8;
  std::uint64_t value;
};
static_assert(sizeof(FuzzChange) == 12);

}  // namespace cuwarden::test
