// Serves page-locked memory for requests up to a limit, cut from larger pieces of the driver's
// memory. The driver takes half a millisecond to lock pages, and as long to unlock them. Free
// memory is kept for later requests until a function gives it back.
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

// All functions may be called by several threads. None holds the lock during a function of the
// driver, which may wait for the device.
class PinnedPool {
 public:
  // The largest request that the pool serves.
  static constexpr std::uint64_t largest_bytes = std::uint64_t{64} << 20;
  // Free bytes that are kept for later requests; give_back_some() gives more than that back at
  // once.
  static constexpr std::uint64_t most_idle_bytes = std::uint64_t{64} << 20;

  // Stands in the parameter `flags` for memory as from cuMemAllocHost, whose flags the driver
  // chooses.
  static constexpr unsigned as_alloc_host = 1u << 31;

  // A block and the context that it belongs to.
  struct PinnedBlock {
    Block block;
    ContextId context;
    friend ContextId context_of(const PinnedBlock& found) noexcept { return found.context; }
  };

  // True if the pool ever held memory. Costs a single load.
  bool any() const noexcept { return has_any_.load(std::memory_order_acquire); }
  // Returns page-locked memory with cuMemHostAlloc's `flags` (or as_alloc_host); 0 if the driver
  // has to serve the request. `context` must be the current context. May throw std::bad_alloc, and
  // has lost no memory then.
  std::uint64_t allocate(const driver::RealDriver&, ContextId, unsigned flags, std::uint64_t bytes,
                         std::uint64_t now_ns);
  // True if the address lies in a piece of the pool. Also true if the lock was given up, so that a
  // piece is never handed to the driver's free function.
  bool has(std::uint64_t address) noexcept;
  // Returns the live block that contains the address; none if there is none.
  std::optional<PinnedBlock> around(std::uint64_t address) noexcept;
  // True if the address lies in a piece of the pool, but in no live block.
  bool is_hole(std::uint64_t address) noexcept;

  // retire(), unretire() and give() act on the block at `start` as the functions of Arena do.
  std::optional<PinnedBlock> retire(std::uint64_t start) noexcept;
  void unretire(std::uint64_t start) noexcept;
  void give(std::uint64_t start, std::uint64_t now_ns) noexcept;
  Deferred<PinnedBlock>& deferred() noexcept { return deferred_; }

  // Gives back to the driver all pieces that have held no block since before `until_ns`. Returns
  // the bytes given back.
  std::uint64_t give_back(const driver::RealDriver& real, std::uint64_t until_ns) noexcept {
    return give_back(real, until_ns, 0);
  }
  // Gives back free memory above most_idle_bytes. Also gives back pieces that have been idle for
  // longer than `idle_limit_ns`, at most every 250 ms. Call it after a free, which has waited for
  // the device.
  void give_back_some(const driver::RealDriver&, std::uint64_t now_ns,
                      std::uint64_t idle_limit_ns) noexcept;
  // Mark the end of a context, as the functions of DevicePool do. The driver itself frees the
  // context's pieces.
  void set_ending(ContextId, bool is_ending) noexcept;
  void context_ended(ContextId) noexcept;

  // Requests that the pool ever served, and their bytes.
  std::uint64_t served_count() const noexcept { return served_.load(std::memory_order_relaxed); }
  std::uint64_t served_bytes() const noexcept {
    return served_bytes_.load(std::memory_order_relaxed);
  }
  // Bytes of page-locked memory that the pool holds, free ones included.
  std::uint64_t held_bytes() noexcept;

 private:
  // The pieces of one context with the same flags.
  struct Heap {
    ContextId context;
    unsigned flags = 0;
    // True while the context ends: the pool hands out and recognises none of its memory.
    bool is_closing = false;
    Packing packing;
  };
  // A stretch of memory that the driver allocated for the pool: its size, the number of its blocks,
  // and the time since which it has none.
  struct Piece {
    std::uint64_t bytes = 0, blocks = 0, idle_since_ns = 0;
    Heap* heap = nullptr;
  };
  using Pieces = std::map<std::uint64_t, Piece>;

  Heap& heap_of(ContextId, unsigned flags);
  // Returns the piece that contains the address, unless its context is about to end.
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
  Deferred<PinnedBlock> deferred_;
};

}  // namespace cuwarden::pool
