// Serves requests for page-locked host memory of up to 64 MiB, with blocks that are cut from larger
// pieces of the driver's memory. Each call of the driver that locks or unlocks pages takes half a
// millisecond. So memory without blocks is kept for later requests, until give_back() or
// give_back_some() frees it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/deferred.hpp"
#include "runtime_hooks/pool/packing/packing.hpp"

namespace cuwarden::pool {

// Serves page-locked host memory, in blocks that are cut from larger pieces. A piece is memory that
// the driver allocated in one call, in one context and with one set of flags of cuMemHostAlloc.
//
// All functions may be called by several threads at once. No function holds the pool's lock during
// a call of the driver, which may wait for the device. If another thread has kept the lock for more
// than ten seconds, a function does nothing. It then returns none, false or 0. Only has() returns
// true, so that the caller leaves the memory alone.
class PinnedPool {
 public:
  // Bytes of the largest request that the pool serves.
  static constexpr std::uint64_t largest_bytes = std::uint64_t{64} << 20;
  // Most bytes of page-locked memory without blocks that the pool keeps for later requests.
  // give_back_some() frees at once all that exceeds this limit.
  static constexpr std::uint64_t most_idle_bytes = std::uint64_t{64} << 20;

  // Value of allocate()'s parameter `flags` that asks for memory as from cuMemAllocHost, for which
  // the driver chooses the flags. No flag of cuMemHostAlloc has this bit.
  static constexpr unsigned as_alloc_host = 1u << 31;

  // A block (page-locked memory that the pool handed out for one request) and the context that it
  // was allocated for.
  struct PinnedBlock {
    Block block;
    ContextId context;
    // Returns the context that the block was allocated for.
    friend ContextId context_of(const PinnedBlock& found) noexcept { return found.context; }
  };

  // True if the pool ever held memory. Costs a single load.
  bool any() const noexcept { return has_any_.load(std::memory_order_acquire); }
  // Returns the address of a new block of `bytes` of page-locked memory, with cuMemHostAlloc's
  // `flags` or `as_alloc_host`. `ContextId` is the current context, or the primary one of a current
  // green context. `now_ns` is the time on the ledger's clock. Returns 0 if the pool cannot serve
  // the request, such as one of 0 bytes or more than `largest_bytes`: then the driver has to. May
  // throw std::bad_alloc, without losing memory.
  std::uint64_t allocate(const driver::RealDriver&, ContextId, unsigned flags, std::uint64_t bytes,
                         std::uint64_t now_ns);
  // True if the address lies in memory of the pool, in a block or not. False for memory of a
  // context that is about to end. True for any address if another thread has kept the pool's lock
  // for more than ten seconds: the caller must not pass memory of the pool to cuMemFreeHost.
  bool has(std::uint64_t address) noexcept;
  // Returns the block in whose requested bytes the address lies and that the program has not freed;
  // none if there is none.
  std::optional<PinnedBlock> around(std::uint64_t address) noexcept;
  // True if the address lies in memory of the pool that the program may not use: outside of all
  // blocks, in a block that the program has freed, or in a block's padding. The padding is up to
  // 511 bytes behind the requested ones. False for memory of a context that is about to end. False
  // also if another thread has kept the pool's lock for more than ten seconds.
  bool is_hole(std::uint64_t address) noexcept;

  // Marks the block that begins at the address `start` as freed by the program, and returns it. The
  // block keeps its memory until give(), because the device may still use it. Returns none if no
  // block begins at `start` or the program has freed it already.
  std::optional<PinnedBlock> retire(std::uint64_t start) noexcept;
  // Makes the block that begins at the address `start` live again, after retire() has marked it as
  // freed: the program's free has failed. Does nothing if no block begins there.
  void unretire(std::uint64_t start) noexcept;
  // Lets later blocks use the memory of the block that begins at the address `start`, after
  // retire(). The device must not use the block any more. Does nothing if no block begins there.
  // `now_ns` is the time on the ledger's clock.
  void give(std::uint64_t start, std::uint64_t now_ns) noexcept;
  // Returns the list of blocks that the program has freed, but that the device may still use. A
  // block on the list keeps its memory. A caller that takes a block out must wait for the block's
  // context, then call give() for the block.
  Deferred<PinnedBlock>& deferred() noexcept { return deferred_; }

  // Frees all pieces of memory that have held no block since `until_ns`, a time on the ledger's
  // clock; UINT64_MAX means all pieces without blocks. Stops if the driver refuses to free a piece,
  // which then stays unused until its context ends. Returns the bytes freed.
  std::uint64_t give_back(const driver::RealDriver& real, std::uint64_t until_ns) noexcept {
    return give_back(real, until_ns, 0);
  }
  // Frees page-locked memory that holds no block, until no more than `most_idle_bytes` of such
  // memory are left. Also frees all memory that has held no block for `idle_limit_ns` nanoseconds;
  // this second step is left out if it was done within the last 250 ms. `now_ns` is the time on the
  // ledger's clock. Must be called after a free that has waited for the device, because the driver
  // may wait here, too.
  void give_back_some(const driver::RealDriver&, std::uint64_t now_ns,
                      std::uint64_t idle_limit_ns) noexcept;
  // Marks the pool's memory of the context (`is_ending` true); must be called before the driver
  // ends the context. The pool neither hands out marked memory nor finds blocks in it. `is_ending`
  // false removes the mark, because the driver did not end the context.
  void set_ending(ContextId, bool is_ending) noexcept;
  // Forgets the memory that set_ending() has marked for the context, and the context's blocks in
  // deferred(). Must be called after the driver has ended the context, which has freed that memory.
  void context_ended(ContextId) noexcept;

  // Returns the number of requests that the pool ever served.
  std::uint64_t served_count() const noexcept { return served_.load(std::memory_order_relaxed); }
  // Returns the bytes of all requests that the pool ever served.
  std::uint64_t served_bytes() const noexcept {
    return served_bytes_.load(std::memory_order_relaxed);
  }
  // Returns the bytes of page-locked memory that the pool holds, in blocks or not; 0 if another
  // thread has kept the pool's lock for more than ten seconds.
  std::uint64_t held_bytes() noexcept;

 private:
  // All memory of the pool that was allocated in one context with the same flags, and its division
  // into blocks.
  struct Heap {
    ContextId context;
    // Flags of cuMemHostAlloc, or `as_alloc_host`, with which the heap's memory was allocated.
    unsigned flags = 0;
    // True while the driver ends the context: the pool neither hands out the heap's memory nor
    // finds blocks in it.
    bool is_closing = false;
    Packing packing;
  };
  // Page-locked memory that the driver allocated for the pool in one call.
  struct Piece {
    std::uint64_t bytes = 0;   // size of the piece
    std::uint64_t blocks = 0;  // number of blocks in the piece
    // Time on the ledger's clock since which no block lies in the piece. Means nothing while
    // `blocks` is not 0.
    std::uint64_t idle_since_ns = 0;
    // The heap (all memory of one context and flags) that the piece belongs to. Never null in
    // `pieces_`.
    Heap* heap = nullptr;
  };
  // Pieces by the address at which they begin.
  using Pieces = std::map<std::uint64_t, Piece>;

  // Returns the heap (all memory of one context and flags) of the context with these flags, which
  // are cuMemHostAlloc's or `as_alloc_host`. Makes one if there is none.
  Heap& heap_of(ContextId, unsigned flags);
  // Returns the piece that contains the address; the end of `pieces_` if there is none or the
  // piece's context is about to end.
  Pieces::iterator piece_around(std::uint64_t address) noexcept;
  // Returns a new block of `bytes` in memory that the heap has already; none if no hole is large
  // enough. `now_ns` is the time on the ledger's clock.
  std::optional<Block> take(Heap&, std::uint64_t bytes, std::uint64_t now_ns);
  // Adds to the heap `bytes` of memory that the driver has allocated at the address `start`. Drops
  // older pieces at these addresses, which the driver has freed with their context.
  void add_piece(Heap&, std::uint64_t start, std::uint64_t bytes);
  // Frees pieces that have held no block since `until_ns`, a time on the ledger's clock, until no
  // more than `kept_bytes` of pieces without blocks are left. Stops if the driver refuses to free a
  // piece, which then stays unused until its context ends. Returns the bytes freed.
  std::uint64_t give_back(const driver::RealDriver&, std::uint64_t until_ns,
                          std::uint64_t kept_bytes) noexcept;

  FutexLock lock_;
  std::atomic<bool> has_any_{false};
  // Number of requests served so far, and the bytes they asked for.
  std::atomic<std::uint64_t> served_{0}, served_bytes_{0};
  // Earliest time on the ledger's clock at which give_back_some() looks for pieces that were idle
  // for long.
  std::atomic<std::uint64_t> next_look_ns_{0};
  // Bytes of all pieces without blocks.
  std::uint64_t idle_bytes_ = 0;
  std::vector<std::unique_ptr<Heap>> heaps_;
  Pieces pieces_;
  Deferred<PinnedBlock> deferred_;
};

}  // namespace cuwarden::pool
