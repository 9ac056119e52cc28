// Address ranges that the program got instead of the driver's memory (spilled requests). The
// program sees each as one allocation; the driver sees mappings of several physical handles.
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

// A spilled allocation: a range of addresses, partly mapped to host memory.
struct Range {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;         // Bytes that the program asked for.
  std::uint64_t mapped_bytes = 0;  // Bytes that are mapped, in whole pages.
  std::uint64_t host_bytes = 0;    // Bytes of `mapped_bytes` that are host memory.
  DeviceOrdinal device = no_device;
  ContextId context;
  Kind kind = Kind::device;
  // The CUmemoryPool that stream-ordered memory was asked from; 0 for other memory.
  std::uint64_t memory_pool = 0;
  // Another context, in whose stream the range was freed, and that must be waited for; 0 if there
  // is none.
  ContextId used_in{};
  bool sync_memops = false;  // True if the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
  // Bytes of each mapping, in the order of addresses: a mapping can be undone only as a whole.
  static constexpr std::size_t most_pieces = 48;
  std::uint32_t piece_count = 0;
  std::array<std::uint64_t, most_pieces> piece_bytes{};
};

// A set of ranges that several threads may use at once.
class Ranges {
 public:
  // True if the set holds a range. Costs a single load.
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  // Adds a range. Returns false if the lock was given up. May throw std::bad_alloc.
  bool insert(const Range&);
  // Removes and returns the range that begins at `start`; none if there is none. Exactly one caller
  // gets each range.
  std::optional<Range> take(std::uint64_t start) noexcept;
  // Returns the range that contains the address; none if there is none.
  std::optional<Range> around(std::uint64_t address) noexcept;
  // True if a range begins at the address.
  bool starts_at(std::uint64_t address) noexcept;
  // Sets Range::sync_memops of the range that begins at `start`; does nothing if there is none.
  void set_sync_memops(std::uint64_t start, bool on) noexcept;
  // Removes and returns one range that belongs to the context; none if none is left.
  std::optional<Range> take_of(ContextId) noexcept;
  // Removes and returns one range for which this is the next context to be waited for; none if none
  // is left.
  std::optional<Range> take_used_in(ContextId) noexcept;
  // Calls visit(range) for each range. The lock is held, so that no range is unmapped meanwhile;
  // `visit` must not call the program's code.
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
  Map ranges_;  // by start
};

}  // namespace cuwarden::pool
