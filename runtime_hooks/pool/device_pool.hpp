// The arenas of the process: one for each context that asked for something that the driver would
// serve with a waste. All functions may be called by several threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/pool/deferred.hpp"

namespace cuwarden::pool {

// A block and where it lies.
struct Placed {
  Block block;
  Arena* arena = nullptr;  // for the life of the process
};
inline ContextId context_of(const Placed& placed) noexcept { return placed.arena->context(); }

class DevicePool {
 public:
  explicit DevicePool(const Peers& peers) noexcept : peers_(peers) {}
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // Whether the driver would put it into a slab, or round it up by more than a sixteenth.
  static constexpr bool is_wasteful(std::uint64_t bytes) {
    const std::uint64_t whole = up_to_page(bytes);
    if (bytes == 0 || whole < bytes || whole - bytes < Packing::step_bytes) return false;
    return whole == page_bytes || (whole - bytes) * 16 > whole;
  }

  // One load where there never was one.
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  // Of the device of the current context, which is `context`. 0: ask the driver. May throw
  // std::bad_alloc, and has done nothing then.
  std::uint64_t allocate(const driver::RealDriver&, DeviceOrdinal, ContextId, std::uint64_t bytes,
                         std::uint64_t now_ns);
  // Whether the address is an arena's; null: it is not.
  Arena* owner(std::uint64_t address) noexcept;
  // The block that it lies in.
  std::optional<Placed> around(std::uint64_t address) noexcept;

  // Retired, and not to be given yet.
  Deferred<Placed>& deferred() noexcept { return deferred_; }

  // Memory of this device, or of all, without a block since before `until_ns`. How much.
  std::uint64_t give_back(const driver::RealDriver&, DeviceOrdinal,
                          std::uint64_t until_ns) noexcept;
  // As Arena::mesh(), of all arenas of the device, until so much is gained; the current context is
  // of that device. 0: it cannot be.
  std::uint64_t mesh(const driver::RealDriver&, DeviceOrdinal, const Pause&,
                     std::uint64_t needed_bytes) noexcept;
  // For a pause in which nothing was moved.
  void was_paused(DeviceOrdinal device, std::uint64_t ns) noexcept {
    if (Arena* const arena = find([&](const Arena& any) { return any.device() == device; }))
      arena->was_paused(ns);
  }
  // Before the driver ends it, and false where it has not; after it has. A new one may have its
  // handle by then.
  void set_ending(ContextId, bool is_ending) noexcept;
  void context_ended(const driver::RealDriver&, ContextId) noexcept;
  // After the peers of this device were changed.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal device, DeviceOrdinal peer,
                         bool may) noexcept;
  ArenaCounts counts(DeviceOrdinal) noexcept;

 private:
  Arena* find_or_make(const driver::RealDriver&, DeviceOrdinal, ContextId);
  template <class Visit>
  void each(const Visit& visit) noexcept {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i)
      if (Arena* const arena = arenas_[i].load(std::memory_order_acquire)) visit(*arena);
  }

  // Null: none fits.
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
  Deferred<Placed> deferred_;
  // Contexts for which there are no addresses are not tried again.
  std::array<std::atomic<std::uint64_t>, 16> without_{};
};

}  // namespace cuwarden::pool
