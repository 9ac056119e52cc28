// The contents of each page of the driver's slabs, and the worst moment of the run: that at which
// the most bytes were locked. At the end of the process, nothing may be locked any more.
//
// The worst moment is stored as a version number. When it is reached, the present contents of all
// pages are those of the moment; a page that changes later copies its contents first. So a change
// is normally one instruction on the page's word. If a thread frees a piece and allocates it again,
// it is not even that.
//
// With one thread the moment is exact. Several threads each keep small changes to themselves. So
// the moment may be wrong by 16 KiB or 1/4096 of the most for each thread, and by a page for each
// thread that rests after a free.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"

namespace cuwarden::ledger {

class SlabPages {
 public:
  SlabPages(Storage& storage, ThreadShards& thread_shards) noexcept
      : storage_(storage), thread_shards_(thread_shards) {}
  bool create() noexcept;

  // Count an allocation: allocated() before readers can find its record, freed() after the record
  // is gone. Groups of other memory than the driver's linear memory are ignored. Must not be called
  // for memory that the pool served.
  void allocated(GroupId id, DeviceAddress address, std::uint64_t bytes,
                 std::uint64_t now_ns) noexcept {
    if (is_linear(id)) change(id, address, bytes, true, now_ns);
  }
  void freed(GroupId id, DeviceAddress address, std::uint64_t bytes,
             std::uint64_t now_ns) noexcept {
    if (is_linear(id)) change(id, address, bytes, false, now_ns);
  }
  // Counts an allocation that ended with its context. A context ends all at once, so no worst
  // moment is looked for meanwhile.
  void released(GroupId id, DeviceAddress address, std::uint64_t bytes) noexcept {
    if (is_linear(id)) change(id, address, bytes, false, no_moment);
  }
  // Returns the bytes that the driver's slabs lock, without changes that threads have not yet
  // passed on.
  std::uint64_t locked_bytes(const Series& series) const noexcept;

 private:
  static constexpr std::uint64_t no_moment = UINT64_MAX;  // instead of a time
  using Leaf = std::atomic<std::uint32_t>;                // row of a page's first; 0: none
  // Bits of the addresses that a process has unless it asks for more (5-level page tables).
  static constexpr std::uint64_t address_bits = 47, page_bits = 21, leaf_bits = 12;
  static constexpr std::uint64_t leaves = 1 << (address_bits - page_bits - leaf_bits);
  static_assert(slab_page_bytes == 1 << page_bits);

  struct Tally;

  const Group& group(GroupId id) const noexcept {
    return storage_.rows<Group>(RegionId::groups)[id.value];
  }
  bool is_linear(GroupId id) const noexcept {
    return group(id).kind == Kind::device && group(id).series != 0;
  }
  static bool is_piece(std::uint64_t address, std::uint64_t bytes) noexcept {
    return bytes <= largest_slab_piece && bytes <= slab_page_bytes - address % slab_page_bytes;
  }
  struct Piece;
  Series& series_row(std::uint64_t row) const noexcept {
    return storage_.rows<Series>(RegionId::series)[row];
  }
  bool keep_freed(ThreadShard&, const Series&, const Piece&) noexcept;
  void apply(ThreadShard&, const Piece&, bool more, std::uint64_t now_ns) noexcept;
  void change(GroupId, DeviceAddress, std::uint64_t bytes, bool more,
              std::uint64_t now_ns) noexcept;
  static void keep_contents(SlabPage&, std::uint32_t version) noexcept;
  void locked_changed(ThreadShard&, Series&, std::size_t row, std::int64_t difference,
                      std::uint64_t now_ns) noexcept;
  void reached(Series&, std::size_t row, std::int64_t known, std::uint64_t now_ns) noexcept;
  Leaf* find_leaf(std::uint64_t address) const noexcept;
  Leaf* find_or_make_leaf(std::uint64_t address) noexcept;
  SlabPage* find(std::uint64_t address, std::int32_t device) const noexcept;
  SlabPage* find_or_make(std::uint64_t address, std::int32_t device) noexcept;
  void copy_holders(Series&, std::uint64_t now_ns) noexcept;
  bool fits(const Series&, std::uint64_t address, std::uint64_t bytes) const noexcept;
  std::uint64_t tally_pieces(Series&, Tally*, std::uint64_t groups) const noexcept;
  void store_reading(Series&) const noexcept;
  void store_holders(Series&, const Tally*, std::uint64_t groups) noexcept;

  Storage& storage_;
  ThreadShards& thread_shards_;
  Mapping root_;         // of std::atomic<Leaf*>
  FutexLock copy_lock_;  // only ever tried
  std::uint64_t copying_ns_ = 0;
};

}  // namespace cuwarden::ledger
