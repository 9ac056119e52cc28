// The part of the ledger's layout that describes the pages of the driver's slabs (slab_pages.hpp).
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::ledger {

// The driver cuts linear memory into pages. A piece that leaves at least a step of its page unused
// may share the page with others; a larger one has pages of its own. Readers check this by the
// addresses.
inline constexpr std::uint64_t slab_page_bytes = 2 << 20, slab_step_bytes = 512;
inline constexpr std::uint64_t largest_slab_piece = slab_page_bytes - slab_step_bytes;

// The contents of one page, packed into one word so that they change at once.
struct SlabContents {
  std::uint64_t count = 0, steps = 0, bytes = 0;  // pieces, steps that they take, requested bytes

  static constexpr SlabContents of(std::uint64_t word) {
    return {word >> 48, word >> 32 & 0xffff, word & 0xffffffff};
  }
  constexpr std::uint64_t word() const { return count << 48 | steps << 32 | bytes; }
  constexpr std::uint64_t cut_bytes() const { return steps * slab_step_bytes; }
  // True if the page has one piece and no room for another like it. The rest of the page then
  // counts as lost to rounding, until smaller pieces come.
  constexpr bool is_rounded() const { return count == 1 && cut_bytes() > slab_page_bytes / 2; }
  constexpr std::uint64_t locked_bytes() const { return is_rounded() ? 0 : rest_bytes(); }
  constexpr std::uint64_t rounding_bytes() const { return is_rounded() ? rest_bytes() : 0; }

 private:
  // If pieces seem to overlap, an older one was freed and not noticed, so the rest is not below 0.
  constexpr std::uint64_t rest_bytes() const {
    return count == 0 || cut_bytes() > slab_page_bytes ? 0 : slab_page_bytes - cut_bytes();
  }
};

// A bit beside the version in at_worst_version: set while the contents are being copied.
inline constexpr std::uint32_t slab_copying = 1u << 31;

// A page of 2 MiB of device memory in which pieces lie.
struct SlabPage {
  std::atomic<std::uint32_t> state;  // 1 = published
  std::int32_t device;
  std::uint64_t address;
  std::atomic<std::uint64_t> contents;
  // The contents at the series' worst moment of version at_worst_version, copied before `contents`
  // change. If the worst moment has another version, the page has not changed since: `contents`
  // count.
  std::atomic<std::uint64_t> contents_at_worst;
  std::atomic<std::uint32_t> at_worst_version;  // slab_copying is set while one is being made
  std::atomic<std::uint32_t> next;  // row of the same address on another device; 0: none
  std::uint32_t reserved[6];
};
static_assert(sizeof(SlabPage) == 64);

// A group that locked slabs of a series at `holders_ns`: its pieces, and its part of the locked
// bytes. A slab's locked bytes are shared equally among its pieces. Guarded by
// Series::holders_version.
inline constexpr std::uint32_t worst_holder_count = 8;
struct WorstHolder {
  std::uint32_t group;  // 0: none
  std::uint32_t reserved;
  std::uint64_t count, bytes, locked_bytes;
};

}  // namespace cuwarden::ledger
