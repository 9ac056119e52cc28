// The part of the ledger's layout that says what lies in the pages of the driver's slabs
// (slab_pages.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::ledger {

// Linear memory, as the driver cuts it: what leaves a step of a page is a piece of one that it may
// share; all else has pages of its own. Who reads a ledger checks it against addresses.
inline constexpr std::uint64_t slab_page_bytes = 2 << 20, slab_step_bytes = 512;
inline constexpr std::uint64_t largest_slab_piece = slab_page_bytes - slab_step_bytes;

// What lies in one page, in one word, so that it changes in one step.
struct SlabContents {
  std::uint64_t count = 0, steps = 0, bytes = 0;  // pieces, what they take, what was requested

  static constexpr SlabContents of(std::uint64_t word) {
    return {word >> 48, word >> 32 & 0xffff, word & 0xffffffff};
  }
  constexpr std::uint64_t word() const { return count << 48 | steps << 32 | bytes; }
  constexpr std::uint64_t cut_bytes() const { return steps * slab_step_bytes; }
  // The page has one piece, and no room for another like it: its rest is what was lost to rounding,
  // until smaller ones come.
  constexpr bool is_rounded() const { return count == 1 && cut_bytes() > slab_page_bytes / 2; }
  constexpr std::uint64_t locked_bytes() const { return is_rounded() ? 0 : rest_bytes(); }
  constexpr std::uint64_t rounding_bytes() const { return is_rounded() ? rest_bytes() : 0; }

 private:
  // Of two at one place the older is gone.
  constexpr std::uint64_t rest_bytes() const {
    return count == 0 || cut_bytes() > slab_page_bytes ? 0 : slab_page_bytes - cut_bytes();
  }
};

// Versions are counted without it.
inline constexpr std::uint32_t slab_copying = 1u << 31;

struct SlabPage {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::int32_t device;
  std::uint64_t address;
  std::atomic<std::uint64_t> contents;
  // As they were when the series' worst moment had this version. Of another version: the same as
  // now, for nothing has changed since. Set before `contents` change.
  std::atomic<std::uint64_t> contents_at_worst;
  std::atomic<std::uint32_t> at_worst_version;  // slab_copying is set while one is being made
  std::atomic<std::uint32_t> next;  // row of the same address on another device; 0: none
  std::uint32_t reserved[6];
};
static_assert(sizeof(SlabPage) == 64);

// Of a series, at `holders_ns`: pieces of one group, and what of their slabs was locked, each
// slab's in equal shares. Changed under Series::holders_version.
inline constexpr std::uint32_t worst_holder_count = 8;
struct WorstHolder {
  std::uint32_t group;  // 0: none
  std::uint32_t reserved;
  std::uint64_t count, bytes, locked_bytes;
};

}  // namespace cuwarden::ledger
