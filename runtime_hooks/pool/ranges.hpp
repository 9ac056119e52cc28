// Spilled allocations: address ranges that the program got instead of the driver's memory, because
// the device was full. For the program, each is one allocation; for the driver, several mappings of
// physical memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::pool {

// A spilled allocation: a range of device addresses behind which the memory, or a part of it, is
// the host's.
struct Range {
  std::uint64_t start = 0;           // The address at which the allocation begins.
  std::uint64_t bytes = 0;           // Bytes that the program asked for.
  std::uint64_t mapped_bytes = 0;    // Bytes of memory behind the range, in whole pages of 2 MiB.
  std::uint64_t host_bytes = 0;      // Bytes of `mapped_bytes` that are host memory.
  DeviceOrdinal device = no_device;  // The device that the program allocated memory of.
  ContextId context;                 // The context that owns the memory (LiveContexts::owner()).
  Kind kind = Kind::device;          // The kind of allocation that the program asked for.
  // The handle of the CUmemoryPool that the program asked for stream-ordered memory; 0 for other
  // memory.
  std::uint64_t memory_pool = 0;
  // Context of the stream in which the program has freed the range. This context is waited for
  // before the range's memory is given back. 0 after the wait, if the range was not freed in a
  // stream, or if the range was allocated in the same context.
  ContextId used_in{};
  bool sync_memops = false;  // True if the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
  // Most mappings (pieces) of which a range may consist.
  static constexpr std::size_t most_pieces = 48;
  // Number of the range's mappings, which together hold all its memory.
  std::uint32_t piece_count = 0;
  // Bytes of each mapping, in the order of addresses, because a mapping can be undone only as a
  // whole. Entries from `piece_count` on mean nothing.
  std::array<std::uint64_t, most_pieces> piece_bytes{};
};

// A set of spilled allocations (ranges) that several threads may use at once. If another thread has
// kept the set's lock for more than ten seconds, a function does nothing, and returns none or
// false.
class Ranges {
 public:
  // True if the set holds a range. Costs a single load.
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  // Adds a range. Returns false, with nothing added, if another thread has kept the set's lock for
  // more than ten seconds. May throw std::bad_alloc.
  bool insert(const Range&);
  // Removes and returns the range that begins at the address `start`; none if there is none. If
  // several threads ask for one range, a single thread gets it.
  std::optional<Range> take(std::uint64_t start) noexcept;
  // Returns the range in whose requested bytes the address lies. None if there is none: an address
  // in the padding behind the requested bytes is in no range.
  std::optional<Range> around(std::uint64_t address) noexcept;
  // True if a range of the set begins at the address.
  bool starts_at(std::uint64_t address) noexcept;
  // Records that the program has set (`on` true) or cleared CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the
  // range that begins at the address `start`. Does nothing if no range begins there.
  void set_sync_memops(std::uint64_t start, bool on) noexcept;
  // Removes and returns one range that was allocated in the context; none if the set has none left.
  std::optional<Range> take_of(ContextId) noexcept;
  // Removes and returns one range that has to wait for this context before its memory is freed. A
  // range waits for Range::used_in first, and for Range::context where `used_in` is 0. Returns none
  // if no range of the set has to wait for this context next.
  std::optional<Range> take_used_in(ContextId) noexcept;
  // Calls visit(range) for each range, with the set's lock held, so that no range is unmapped
  // during the call. Calls nothing if another thread has kept the lock for more than ten seconds.
  // `visit` must not call code of the program.
  template <class Visit>
  void each(const Visit& visit) noexcept {
    if (!any()) return;
    const Locked locked(lock_);
    if (!locked) return;
    for (const auto& [start, range] : ranges_) visit(range);
  }

 private:
  using Map = std::map<std::uint64_t, Range>;
  std::optional<Range> take_at(Map::iterator) noexcept;
  template <class Is>
  std::optional<Range> take_one(const Is&) noexcept;

  FutexLock lock_;
  std::atomic<std::uint32_t> count_{0};
  Map ranges_;  // Ranges by the address at which they begin.
};

}  // namespace cuwarden::pool
