// Page-locked memory for requests of all sizes up to a limit, cut from larger pieces of the
// driver's: to lock pages takes it half a millisecond, and to unlock them as long. What is free is
// kept for the next one, and is given back when somebody asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/deferred.hpp"
#include "runtime_hooks/pool/packing.hpp"

namespace cuwarden::pool {

// All functions may be called by several threads. None holds the lock over a function of the
// driver, which may wait for the device.
class PinnedPool {
 public:
  static constexpr std::uint64_t largest_bytes = std::uint64_t{64} << 20;
  // Of what is free, so much is kept for later; more goes back at once.
  static constexpr std::uint64_t most_idle_bytes = std::uint64_t{64} << 20;

  // In place of flags: as cuMemAllocHost, whose memory has flags of the driver's choice.
  static constexpr unsigned as_alloc_host = 1u << 31;

  struct Placed {
    Block block;
    ContextId context;
    friend ContextId context_of(const Placed& placed) noexcept { return placed.context; }
  };

  // One load where there never was one.
  bool any() const noexcept { return has_any_.load(std::memory_order_acquire); }
  // As cuMemHostAlloc, in the current context, which is `context`. 0: ask the driver. May throw
  // std::bad_alloc, and has lost nothing then.
  std::uint64_t allocate(const driver::RealDriver&, ContextId, unsigned flags, std::uint64_t bytes,
                         std::uint64_t now_ns);
  // Whether the address lies in a piece of the driver's memory that is cut here; also where nobody
  // can tell, for the driver must not free such a piece.
  bool has(std::uint64_t address) noexcept;
  std::optional<Placed> around(std::uint64_t address) noexcept;
  // Whether it lies in such a piece, and in no block.
  bool is_hole(std::uint64_t address) noexcept;

  // As Arena's.
  std::optional<Placed> retire(std::uint64_t start) noexcept;
  void unretire(std::uint64_t start) noexcept;
  void give(std::uint64_t start, std::uint64_t now_ns) noexcept;
  Deferred<Placed>& deferred() noexcept { return deferred_; }

  // Pieces without a block since before `until_ns` go back to the driver. How much.
  std::uint64_t give_back(const driver::RealDriver& real, std::uint64_t until_ns) noexcept {
    return give_back(real, until_ns, 0);
  }
  // After a free, which has waited for the device: what is above most_idle_bytes, and now and then
  // what is idle for long.
  void give_back_some(const driver::RealDriver&, std::uint64_t now_ns,
                      std::uint64_t idle_limit_ns) noexcept;
  // As DevicePool's; the driver frees what a context had.
  void set_ending(ContextId, bool is_ending) noexcept;
  void context_ended(ContextId) noexcept;

  std::uint64_t served_count() const noexcept { return served_.load(std::memory_order_relaxed); }
  std::uint64_t served_bytes() const noexcept {
    return served_bytes_.load(std::memory_order_relaxed);
  }
  std::uint64_t held_bytes() noexcept;

 private:
  // What lies in different ones has different properties.
  struct Heap {
    ContextId context;
    unsigned flags = 0;
    bool is_closing = false;  // its context ends: nothing is its any more
    Packing packing;
  };
  // Of the driver's.
  struct Piece {
    std::uint64_t bytes = 0, blocks = 0, idle_since_ns = 0;
    Heap* heap = nullptr;
  };
  using Pieces = std::map<std::uint64_t, Piece>;  // by start

  Heap& heap_of(ContextId, unsigned flags);
  // Of a context that is not about to end.
  Pieces::iterator piece_around(std::uint64_t address) noexcept;
  std::optional<Block> take(Heap&, std::uint64_t bytes, std::uint64_t now_ns);
  void add_piece(Heap&, std::uint64_t start, std::uint64_t bytes);
  std::uint64_t give_back(const driver::RealDriver&, std::uint64_t until_ns,
                          std::uint64_t kept_bytes) noexcept;

  FutexLock lock_;
  std::atomic<bool> has_any_{false};
  std::atomic<std::uint64_t> served_{0}, served_bytes_{0}, next_look_ns_{0};
  std::uint64_t idle_bytes_ = 0;
  std::vector<std::unique_ptr<Heap>> heaps_;
  Pieces pieces_;
  Deferred<Placed> deferred_;
};

}  // namespace cuwarden::pool
