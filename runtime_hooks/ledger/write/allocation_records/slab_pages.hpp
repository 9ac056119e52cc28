// The contents of the driver's slabs: 2 MiB pages that it cuts small allocations from. The unused
// bytes of a page are locked while the page has any allocation: the driver cannot give them back.
// The worst moment of a device is that at which the most bytes were locked. It is recorded because
// at the end of the process nothing may be locked any more.
//
// The worst moment is stored as a version number. When it is reached, all pages have the contents
// of that moment; a page that changes later copies its contents first. So a change is normally one
// instruction on the page's word. If a thread frees a piece (an allocation that is smaller than a
// page) and allocates it again, no page changes at all.
//
// With one thread the worst moment is exact. With several threads, each keeps small changes in its
// shard for a while. So the bytes of the worst moment may be wrong, for each thread, by 16 KiB or
// 1/4096 of them. For each thread that allocates nothing after a free, they may be wrong by a page.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::ledger {

// Keeps the contents of the driver's slabs in the ledger: for each 2 MiB page, the number and bytes
// of its allocations. All threads may call the functions at any time after create().
class SlabPages {
 public:
  // The arguments are parts of one ledger's writer, which the object uses and does not own. They
  // must outlive it.
  SlabPages(Storage& storage, ThreadShards& thread_shards) noexcept
      : storage_(storage), thread_shards_(thread_shards) {}
  // Maps memory for the index of the slab pages; must be called before other functions. Returns
  // false if there is no memory.
  bool create() noexcept;

  // Adds an allocation to the contents of its slab (2 MiB unit of the driver). `id`: the
  // allocation's group; the call is ignored if the group's memory is not linear device memory
  // (cuMemAlloc). An allocation that lies in no slab only changes the bytes lost to rounding.
  // `bytes`: size as the program requested it. `now_ns`: time since process start. Must be called
  // before the allocation's record is added. Must not be called for memory from cuwarden's pool.
  void allocated(GroupId id, DeviceAddress address, std::uint64_t bytes,
                 std::uint64_t now_ns) noexcept {
    if (is_linear(id)) change(id, address, bytes, true, now_ns);
  }
  // Removes an allocation from the contents of its slab (2 MiB unit of the driver), after the
  // allocation's record has ended. `id`, `address`, `bytes`: as allocated() was given them.
  // `now_ns`: present time since process start.
  void freed(GroupId id, DeviceAddress address, std::uint64_t bytes,
             std::uint64_t now_ns) noexcept {
    if (is_linear(id)) change(id, address, bytes, false, now_ns);
  }
  // Removes an allocation that ended with its context from the contents of its slab (2 MiB unit of
  // the driver). `id`, `address`, `bytes`: as allocated() was given them. While a context's
  // allocations are removed one by one, locked bytes (unused, in partly live slabs) may rise for an
  // instant. They do not count as a new highest value, because the driver frees a context's memory
  // all at once.
  void released(GroupId id, DeviceAddress address, std::uint64_t bytes) noexcept {
    if (is_linear(id)) change(id, address, bytes, false, no_moment);
  }
  // Returns the locked bytes of a device's linear memory: unused bytes in slab pages with live
  // allocations. `series`: the series of the device's linear memory. A page whose only allocation
  // takes more than half of it does not count. Small changes that threads still keep in their
  // shards (their own counters) are missing.
  std::uint64_t locked_bytes(const Series& series) const noexcept;

 private:
  // Value of change()'s `now_ns` for an allocation that ends with its context. Such a change never
  // makes a worst moment, even if more bytes are locked (unused, in partly live pages) than ever
  // before.
  static constexpr std::uint64_t no_moment = UINT64_MAX;
  // Entry of the index for one 2 MiB page of addresses: number of a row in the ledger's table of
  // SlabPages; 0: no row has these addresses. If several devices have a page with these addresses,
  // SlabPage::next of each row names the next one.
  using Leaf = std::atomic<std::uint32_t>;
  // Bits of an address; more only if a process asks for 5-level page tables.
  static constexpr std::uint64_t address_bits = 47;
  static constexpr std::uint64_t page_bits = 21;  // bits of an address's offset in its page
  static constexpr std::uint64_t leaf_bits = 12;  // bits of a page's index in a leaf table
  // Number of leaf tables of the index, each for 2^leaf_bits pages.
  static constexpr std::uint64_t leaves = 1 << (address_bits - page_bits - leaf_bits);
  static_assert(slab_page_bytes == 1 << page_bits);

  // Sums over the pieces (allocations in slab pages) of one group.
  struct PieceSums;

  // Returns the group's row in the ledger. `id` must not be 0.
  const Group& group(GroupId id) const noexcept {
    return storage_.rows<Group>(RegionId::groups)[id.value];
  }
  // True if the group's memory is linear device memory (cuMemAlloc), and the ledger had room for
  // the group's Series (totals of its kind and device). `id` must not be 0.
  bool is_linear(GroupId id) const noexcept {
    return group(id).kind == Kind::device && group(id).series != 0;
  }
  // True if an allocation of this address and size is a piece: it lies in one slab page, and leaves
  // room there for other allocations.
  static bool is_piece(std::uint64_t address, std::uint64_t bytes) noexcept {
    return bytes <= largest_slab_piece && bytes <= slab_page_bytes - address % slab_page_bytes;
  }
  // A piece (an allocation in a slab page): row of its Series, address and requested bytes.
  struct Piece;
  // Returns this row of the ledger's table of series (all memory of one kind on one device).
  Series& series_row(std::uint64_t row) const noexcept {
    return storage_.rows<Series>(RegionId::series)[row];
  }
  // Leaves a freed piece (an allocation in a slab page) counted in its page for now, since the
  // thread may soon allocate it again. The piece is remembered in the thread's shard (its own
  // counters). Returns false, and does nothing, if the free must count at once.
  bool keep_freed(ThreadShard&, const Series&, const Piece&) noexcept;
  // Adds a piece (an allocation in a slab page) to its page if `more` is true; otherwise removes
  // the piece. Counts the change of locked bytes (unused bytes in pages with live allocations).
  // `now_ns`: time since process start; no_moment: the allocation ends with its context.
  void apply(ThreadShard&, const Piece&, bool more, std::uint64_t now_ns) noexcept;
  // Counts that an allocation of linear memory has begun (`more` is true) or ended (false).
  // `now_ns`: time since process start; no_moment: the allocation ends with its context.
  void change(GroupId, DeviceAddress, std::uint64_t bytes, bool more,
              std::uint64_t now_ns) noexcept;
  // Copies the page's present contents as those of the worst moment, unless the page has that copy
  // already. The worst moment of a series is that at which the most bytes were locked (unused, in
  // pages with live allocations). `version`: number of the worst moment (Series::worst_version). To
  // be called before the contents change.
  static void keep_contents(SlabPage&, std::uint32_t version) noexcept;
  // Adds `difference` to the locked bytes of a series (the linear memory of one device): unused
  // bytes in pages with live allocations. A small difference may be kept in the thread's shard (its
  // own counters) for now. `row`: row of the series. If more bytes are locked than ever before,
  // calls reached(). `now_ns`: time since process start; no_moment: the allocation ends with its
  // context, and reached() is not called.
  void locked_changed(ThreadShard&, Series&, std::size_t row, std::int64_t difference,
                      std::uint64_t now_ns) noexcept;
  // Makes the present moment the worst one of a series (the linear memory of one device), if more
  // bytes are locked (unused, in pages with live allocations) than ever before. `row`: row of the
  // series. `known`: locked bytes of the series, without the changes that threads keep in their
  // shards. `now_ns`: time since process start.
  void reached(Series&, std::size_t row, std::int64_t known, std::uint64_t now_ns) noexcept;
  // Returns the index's entry for the 2 MiB page of this address; null if there is none yet.
  Leaf* find_leaf(std::uint64_t address) const noexcept;
  // Returns the index's entry for the 2 MiB page of this address, and makes it if needed. Null if
  // there is no memory.
  Leaf* find_or_make_leaf(std::uint64_t address) noexcept;
  // Returns the row of the page with this address on this device; null if there is none.
  SlabPage* find(std::uint64_t address, std::int32_t device) const noexcept;
  // Returns the row of the page with this address on this device, and makes it if needed. Null if
  // there is no room.
  SlabPage* find_or_make(std::uint64_t address, std::int32_t device) noexcept;
  // Stores the groups that lock the most bytes at present (unused bytes in pages with their live
  // allocations) as the WorstHolder rows of a series (the linear memory of one device). Does
  // nothing if another thread is doing so, or if copying has already taken too much time. `now_ns`:
  // time since process start.
  void copy_holders(Series&, std::uint64_t now_ns) noexcept;
  // True if the address and size of an allocation agree with the layout of the driver's slabs (2
  // MiB units) that slab_layout.hpp assumes. `Series`: the linear memory of the allocation's
  // device.
  bool fits(const Series&, std::uint64_t address, std::uint64_t bytes) const noexcept;
  // Adds each live piece (allocation in a slab page) of the series (the linear memory of one
  // device) to the sums of its group. `PieceSums`: array of `groups` entries, by group. Returns the
  // number of pieces that share their page. Sets Series::slabs_misfit to 1 if more than two
  // allocations for each thread contradict the assumed layout of slabs, otherwise to 0.
  std::uint64_t sum_pieces(Series&, PieceSums*, std::uint64_t groups) const noexcept;
  // Copies the last reading of the memory of the series' device to Series::read_*.
  void store_reading(Series&) const noexcept;
  // Stores the groups with the most locked bytes (unused bytes in pages with their live
  // allocations) as the WorstHolder rows of the series (the linear memory of one device).
  // `PieceSums`: array of `groups` entries, by group.
  void store_holders(Series&, const PieceSums*, std::uint64_t groups) noexcept;

  Storage& storage_;             // the memory of the ledger, with its tables
  ThreadShards& thread_shards_;  // each thread's own counters
  // First level of the index of pages: array of `leaves` entries of type std::atomic<Leaf*>. An
  // entry is null as long as its leaf table has no page.
  Mapping root_;
  FutexLock copy_lock_;           // held while WorstHolder rows are filled; never waited for
  std::uint64_t copying_ns_ = 0;  // nanoseconds of processor time that copy_holders() has taken
};

}  // namespace cuwarden::ledger
