// The arenas of the process: one for each context that made a request which the driver would serve
// wastefully. All functions may be called by several threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/deferred.hpp"

namespace cuwarden::pool {

// A block and the arena that it lies in.
struct ArenaBlock {
  Block block;
  // Never null in a block that is handed out. Arenas live as long as the process.
  Arena* arena = nullptr;
};
inline ContextId context_of(const ArenaBlock& found) noexcept { return found.arena->context(); }

class DevicePool {
 public:
  explicit DevicePool(const Peers& peers) noexcept : peers_(peers) {}
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // True if the driver would cut the request from a slab, or round it up by more than a sixteenth.
  static constexpr bool is_wasteful(std::uint64_t bytes) {
    const std::uint64_t whole = up_to_page(bytes);
    if (bytes == 0 || whole < bytes || whole - bytes < Packing::step_bytes) return false;
    return whole == page_bytes || (whole - bytes) * 16 > whole;
  }

  // True if an arena was ever made. Costs a single load.
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  // Returns the address of a new block on the device of the current context, which must be
  // `context`; 0 if the driver has to serve the request. May throw std::bad_alloc, and has changed
  // nothing then.
  std::uint64_t allocate(const driver::RealDriver&, DeviceOrdinal, ContextId, std::uint64_t bytes,
                         std::uint64_t now_ns);
  // Returns the arena whose range contains the address; null if there is none.
  Arena* owner(std::uint64_t address) noexcept;
  // Returns the live block that contains the address; none if there is none.
  std::optional<ArenaBlock> around(std::uint64_t address) noexcept;

  // Retired blocks that the device may still use.
  Deferred<ArenaBlock>& deferred() noexcept { return deferred_; }

  // Gives back to the device all memory that has held no block since before `until_ns`, on this
  // device, or on all for no_device. Returns the bytes given back.
  std::uint64_t give_back(const driver::RealDriver&, DeviceOrdinal,
                          std::uint64_t until_ns) noexcept;
  // Meshes all arenas of the device, as Arena::mesh() does, until `needed_bytes` are saved or
  // nothing is left to save. The current context must be of that device. Returns the bytes saved.
  std::uint64_t mesh(const driver::RealDriver&, DeviceOrdinal, const Pause&,
                     std::uint64_t needed_bytes) noexcept;
  // Adds `ns` to the counted pauses, for a pause in which nothing was moved.
  void was_paused(DeviceOrdinal device, std::uint64_t ns) noexcept {
    if (Arena* const arena = find([&](const Arena& any) { return any.device() == device; }))
      arena->was_paused(ns);
  }
  // Call set_ending() with true before the driver ends the context, and with false if it has not
  // ended after all. Call context_ended() once it has: a new context may have the same handle by
  // then.
  void set_ending(ContextId, bool is_ending) noexcept;
  // Gives up the arena of the context, which was marked by set_ending().
  void context_ended(const driver::RealDriver&, ContextId) noexcept;
  // Changes the access of `peer` to all arenas of the device, after Peers was changed. Returns the
  // last error.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal device, DeviceOrdinal peer,
                         bool may) noexcept;
  // Returns the sums over all arenas of the device.
  ArenaCounts counts(DeviceOrdinal) noexcept;

 private:
  // Returns the open arena of the context, or opens one; null if there are no addresses for it.
  Arena* find_or_make(const driver::RealDriver&, DeviceOrdinal, ContextId);
  // Calls visit(arena) for each arena, ended ones included.
  template <class Visit>
  void each(const Visit& visit) noexcept {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i)
      if (Arena* const arena = arenas_[i].load(std::memory_order_acquire)) visit(*arena);
  }

  // Returns an arena for which fits(arena) is true; null if there is none.
  template <class Fits>
  Arena* find(const Fits& fits) noexcept {
    Arena* found = nullptr;
    each([&](Arena& arena) {
      if (fits(arena)) found = &arena;
    });
    return found;
  }

  static constexpr std::uint32_t most_arenas = 256;
  const Peers& peers_;
  FutexLock lock_;
  std::atomic<std::uint32_t> count_{0};
  std::array<std::atomic<Arena*>, most_arenas> arenas_{};
  Deferred<ArenaBlock> deferred_;
  // Contexts for which no addresses could be reserved, hashed by handle (0: empty entry). They are
  // not tried again.
  std::array<std::atomic<std::uint64_t>, 16> without_{};
};

}  // namespace cuwarden::pool
