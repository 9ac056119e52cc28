// The part of the ledger's layout that describes slabs: pages of 2 MiB of device memory from which
// the driver cuts the pieces that it hands out for small requests (slab_pages.hpp). Bytes of a
// partly live page that no live piece has are locked: the driver can use them for pieces only.
#pragma once

#include <atomic>
#include <cstdint>

namespace cuwarden::ledger {

// `slab_page_bytes`: usual size of the driver's pages of linear device memory. `slab_step_bytes`:
// granularity to which the driver rounds requests up inside a page. Both in bytes.
// Series::slabs_misfit is 1 if the addresses of many live allocations contradicted these numbers
// when last looked at.
inline constexpr std::uint64_t slab_page_bytes = 2 << 20, slab_step_bytes = 512;
// Largest request in bytes that the driver cuts from a page of 2 MiB that other requests may share.
// A larger request gets whole pages.
inline constexpr std::uint64_t largest_slab_piece = slab_page_bytes - slab_step_bytes;

// Three numbers about the live pieces (small allocations) in one page of 2 MiB. The ledger keeps
// them packed into one 64-bit word, so that they change at once.
struct SlabContents {
  std::uint64_t count = 0;  // number of live pieces (small allocations) in the page
  std::uint64_t steps = 0;  // units of 512 bytes (slab_step_bytes) that the live pieces take
  std::uint64_t bytes = 0;  // bytes that the program requested for the page's live pieces

  // Unpacks the page's numbers from a word that word() has made.
  static constexpr SlabContents of(std::uint64_t word) {
    return {word >> 48, word >> 32 & 0xffff, word & 0xffffffff};
  }
  // Returns `count` and `steps` (both below 2^16) and `bytes` (below 2^32) packed into one word.
  // The words of two objects can be added or subtracted, which adds or subtracts all three numbers,
  // as long as each result stays within its limit.
  constexpr std::uint64_t word() const { return count << 48 | steps << 32 | bytes; }
  // Returns the bytes of the slab page that live pieces (allocations in it) take, each rounded up
  // to slab_step_bytes.
  constexpr std::uint64_t cut_bytes() const { return steps * slab_step_bytes; }
  // True if the slab page has one live piece (an allocation in it), which takes more than half of
  // the page. The rest of the page then counts as lost to rounding; it counts as locked as soon as
  // there is a second piece.
  constexpr bool is_rounded() const { return count == 1 && cut_bytes() > slab_page_bytes / 2; }
  // Returns the slab page's locked bytes: no live piece (allocation in it) has them, and the driver
  // can use them only for further pieces. 0 for an empty page, if is_rounded(), and if the pieces
  // take more than a page.
  constexpr std::uint64_t locked_bytes() const { return is_rounded() ? 0 : rest_bytes(); }
  // Returns the slab page's bytes that count as lost to rounding its only piece (an allocation in
  // it) up to the whole page; 0 unless is_rounded().
  constexpr std::uint64_t rounding_bytes() const { return is_rounded() ? rest_bytes() : 0; }

 private:
  // Returns the slab page's bytes that no live piece (allocation in it) has; 0 if no piece is live.
  // Also 0 if the pieces take more than a page: then an older piece was freed unnoticed.
  constexpr std::uint64_t rest_bytes() const {
    return count == 0 || cut_bytes() > slab_page_bytes ? 0 : slab_page_bytes - cut_bytes();
  }
};

// The highest bit of SlabPage::at_worst_version, whose other bits are the number of a worst moment
// (Series::worst_version). The bit is set while a thread copies `contents` to `contents_at_worst`.
inline constexpr std::uint32_t slab_copying = 1u << 31;

// A page of 2 MiB of device memory from which the driver cut pieces (small allocations). The worst
// moment of a device is that at which the most bytes were locked: free, but in partly live pages.
// Series::worst_version counts the worst moments; each replaces the one before.
struct SlabPage {
  std::atomic<std::uint32_t> state;     // 1: readers may use the row; 0: not filled in yet
  std::int32_t device;                  // CUDA ordinal of the device, from 0
  std::uint64_t address;                // address of the slab page's first byte
  std::atomic<std::uint64_t> contents;  // live pieces in the page now: SlabContents::word()
  // The page's contents at the device's worst moment (most locked bytes) with the number
  // `at_worst_version`. They were copied from `contents` before the first change after that moment.
  // If Series::worst_version is another number, the page has not changed since the latest worst
  // moment: `contents` are then those at that moment.
  std::atomic<std::uint64_t> contents_at_worst;
  // Lower 31 bits: number of the device's worst moment (Series::worst_version) to which
  // `contents_at_worst` belongs. Highest bit (slab_copying): set while a thread makes the copy.
  std::atomic<std::uint32_t> at_worst_version;
  // Row of the next SlabPage with this address, on another device; 0 ends the list.
  std::atomic<std::uint32_t> next;
  std::uint32_t reserved[6];
};
static_assert(sizeof(SlabPage) == 64);

inline constexpr std::uint32_t worst_holder_count = 8;  // number of WorstHolder rows of a series
// A group (allocations with the same call stack and function) that locked bytes in slabs of a
// device at the time Series::holders_ns. A reader may use its copy only if the seqlock
// Series::holders_version was even before and has not changed meanwhile.
struct WorstHolder {
  // The group's row in the groups table; 0: this and the series' later rows are unused.
  std::uint32_t group;
  std::uint32_t reserved;
  // Number and requested bytes of the group's live pieces (allocations in slabs).
  std::uint64_t count, bytes;
  // The group's part of all bytes locked in slabs of the device. A slab's locked bytes are divided
  // equally among its live pieces (allocations).
  std::uint64_t locked_bytes;
};

}  // namespace cuwarden::ledger
