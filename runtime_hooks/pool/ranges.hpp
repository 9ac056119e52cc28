// Address ranges that the program was given instead of the driver's memory. To it each is one
// allocation; to the driver it is mappings of several physical handles.
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

struct Range {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;         // asked for
  std::uint64_t mapped_bytes = 0;  // whole pages
  std::uint64_t host_bytes = 0;    // of those
  DeviceOrdinal device = no_device;
  ContextId context;
  Kind kind = Kind::device;
  std::uint64_t memory_pool = 0;  // CUmemoryPool that was asked for stream-ordered memory
  // Another one, in whose stream it was freed, and that is to be waited for; 0: none.
  ContextId used_in{};
  bool sync_memops = false;  // the program set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  // In the order of their addresses. A mapping can be undone only as it was made.
  static constexpr std::size_t most_pieces = 48;
  std::uint32_t piece_count = 0;
  std::array<std::uint64_t, most_pieces> piece_bytes{};
};

class Ranges {
 public:
  // One load where there never was one.
  bool any() const noexcept { return count_.load(std::memory_order_relaxed) != 0; }

  // May throw std::bad_alloc. False: the lock was given up.
  bool insert(const Range&);
  // Exactly one call gets each.
  std::optional<Range> take(std::uint64_t start) noexcept;
  // The one that the address lies in.
  std::optional<Range> around(std::uint64_t address) noexcept;
  bool starts_at(std::uint64_t address) noexcept;
  void set_sync_memops(std::uint64_t start, bool on) noexcept;
  // One of this context, taken out; none: there is none left.
  std::optional<Range> take_of(ContextId) noexcept;
  // One for which this is the next context to be waited for, likewise.
  std::optional<Range> take_used_in(ContextId) noexcept;
  // Visits all, with the lock held, so that none is unmapped meanwhile; `visit` must call nothing
  // of the program's.
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
