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

// Nanoseconds after which memory without a block goes back to the driver, in this pool and in that
// of page-locked memory. With a shorter time, a program that allocates and frees in turn would cost
// more calls of the driver.
inline constexpr std::uint64_t longest_idle_ns = 1'000'000'000;

// A block (memory that the pool handed out for one request) and the arena that the block lies in.
struct ArenaBlock {
  Block block;
  // The arena (the memory of one context) that the block lies in. Never null in a block that the
  // pool returned. Arenas live as long as the DevicePool.
  Arena* arena = nullptr;
};
// Returns the context that the block was allocated for.
inline ContextId context_of(const ArenaBlock& found) noexcept { return found.arena->context(); }

// Serves requests for device memory that the driver would serve wastefully, from an arena for each
// context. All functions may be called by several threads at once.
class DevicePool {
 public:
  // `peers`, the record of the devices that may use each other's memory, outlives the pool.
  // `meshes`: true if mesh() may be called, until meshes_no_more(). `by_kernel`: true if mesh() is
  // to copy with a kernel. The pool then loads the kernel when it makes a context's arena, if the
  // device has room for it.
  explicit DevicePool(const Peers& peers, bool meshes = true, bool by_kernel = true) noexcept
      : peers_(peers), meshes_(meshes), by_kernel_(by_kernel) {}
  // Frees the arenas' host memory only. Their device memory and addresses stay until the contexts
  // and the process end.
  ~DevicePool();

  // True if the driver would waste memory on a request of `bytes`. That holds for requests that are
  // at least 512 bytes smaller than a page (2 MiB). It also holds for a larger request if rounding
  // it up to whole pages adds more than a sixteenth of the rounded size. False for 0.
  static constexpr bool is_wasteful(std::uint64_t bytes) {
    const std::uint64_t whole = up_to_page(bytes);
    if (bytes == 0 || whole < bytes || whole - bytes < Packing::step_bytes) return false;
    return whole == page_bytes || (whole - bytes) * 16 > whole;
  }

  // True if the pool ever made an arena, which it does for its first request. Costs a single load.
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  // Returns the address of a new block of `bytes` in the arena of `ContextId`. This is the current
  // context, or the primary one of the device if a green context is current. `DeviceOrdinal` is the
  // context's device. If memory is lacking, gives the idle memory of all arenas of the device back
  // first. `now_ns` is the time on the ledger's clock. Returns 0 if the pool has no memory or
  // addresses for the request: then the driver has to serve it. May throw std::bad_alloc; then no
  // block is handed out.
  std::uint64_t allocate(const driver::RealDriver&, DeviceOrdinal, ContextId, std::uint64_t bytes,
                         std::uint64_t now_ns);
  // Tells the pool that mesh() will not be called any more, or can move nothing. From then on pages
  // get memory one by one, so that an empty page can always go back to the driver, which takes
  // longer.
  void meshes_no_more() noexcept { meshes_.store(false, std::memory_order_relaxed); }
  // Returns the arena whose reserved addresses contain `address`; null if there is none. The
  // address need not lie in a block.
  Arena* owner(std::uint64_t address) noexcept;
  // Returns the block in whose requested bytes `address` lies and that the program has not freed.
  // None if there is no such block, or if the arena's lock cannot be taken (class Arena).
  std::optional<ArenaBlock> around(std::uint64_t address) noexcept;

  // Returns the list of blocks that the program has freed, but that the device may still use. A
  // block on the list keeps its memory. A caller that takes a block out must wait for the block's
  // context, then call Arena::give() for the block.
  Deferred<ArenaBlock>& deferred() noexcept { return deferred_; }

  // Gives memory back to the driver that has held no block since `until_ns`, a time on the ledger's
  // clock; UINT64_MAX means all memory without blocks. Memory that was mapped in one piece with
  // memory in use stays. Memory that mesh() has kept stays, too (give_back_start_memory()). Acts on
  // the arenas of one device, or on all for no_device. Returns the bytes given back.
  std::uint64_t give_back(const driver::RealDriver&, DeviceOrdinal,
                          std::uint64_t until_ns) noexcept;
  // Makes little used pages of the device's arenas share memory, and gives the saved memory back to
  // the driver. Blocks are copied, but keep their addresses. `Pause` pauses the program while
  // blocks are copied. The current context must be one of the device. Returns the bytes saved.
  std::uint64_t mesh(const driver::RealDriver&, DeviceOrdinal, Pause&, const MeshGoal&) noexcept;
  // Brings blocks of the device's arenas back from host memory, to which mesh() has moved them
  // (Arena::bring_back_evicted()). The caller has seen that the device has room for them.
  void bring_back_evicted(const driver::RealDriver&, DeviceOrdinal, Pause&, bool verifies) noexcept;
  // Gives back to the driver the memory that mesh() has kept for its next call. To be called before
  // a request on the device is refused without a call of mesh(). Returns the bytes given back.
  std::uint64_t give_back_start_memory(const driver::RealDriver&, DeviceOrdinal) noexcept;
  // Adds `ns` nanoseconds to the device's ArenaCounts::pause_ns (time of pauses for meshing), for a
  // pause of the program in which no memory was moved. Does nothing if the device has no arena.
  void was_paused(DeviceOrdinal device, std::uint64_t ns) noexcept {
    if (Arena* const arena = find([&](const Arena& any) { return any.device() == device; }))
      arena->was_paused(ns);
  }
  // Marks the arenas of the context (`is_ending` true); must be called before the driver ends the
  // context. Marked arenas serve no more requests. `is_ending` false removes the mark, because the
  // driver did not end the context.
  void set_ending(ContextId, bool is_ending) noexcept;
  // Frees the addresses and memory of the arenas that set_ending() has marked for the context, with
  // all blocks in them. Removes the context's blocks from deferred(). Must be called after the
  // driver has ended the context. Arenas without the mark are kept: they belong to a new context
  // with the same handle.
  void context_ended(const driver::RealDriver&, ContextId) noexcept;
  // Lets the device `peer` use the memory that arenas of `device` have now, or forbids it (`may`
  // false). The caller must before have changed the Peers object that this pool was made with,
  // which decides about memory that is mapped later. Returns the driver's last error; CUDA_SUCCESS
  // if there was none.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal device, DeviceOrdinal peer,
                         bool may) noexcept;
  // Returns the bytes of device memory that mesh() would save now if it saved all it can. Plans
  // that for all pages: takes some microseconds a page.
  std::uint64_t meshable_bytes(const driver::RealDriver&, DeviceOrdinal) noexcept;
  // Returns the sums of the figures of all arenas of the device, also of those whose context ended.
  // An arena whose lock cannot be taken is left out.
  ArenaCounts counts(DeviceOrdinal) noexcept;

 private:
  // Returns the open arena of the context, or opens one. Returns null if none could be opened for
  // the context, now or in an earlier call. That is so if Arena::open() fails, or if there are
  // `most_arenas` (256) and none is left over from a context of this device that has ended. Returns
  // null, too, if another thread has kept the pool's lock for more than ten seconds. May throw
  // std::bad_alloc.
  Arena* find_or_make(const driver::RealDriver&, DeviceOrdinal, ContextId);
  // Does the work of find_or_make() when the context has no arena yet. Takes the pool's lock.
  // `is_new`: set to true if this call has opened the arena; otherwise unchanged.
  Arena* open_arena(const driver::RealDriver&, DeviceOrdinal, ContextId, bool& is_new);
  // Returns the open arena of the context; null if there is none, or if the context is about to
  // end.
  Arena* arena_of(ContextId context) noexcept {
    return find([&](const Arena& arena) {
      return arena.context() == context && arena.is_open() && !arena.is_closing();
    });
  }
  // Calls visit(arena) for each arena, including those whose context has ended.
  template <class Visit>
  void each(const Visit& visit) noexcept {
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i)
      if (Arena* const arena = arenas_[i].load(std::memory_order_acquire)) visit(*arena);
  }

  // Returns one of the arenas for which fits(arena) is true; null if there is none.
  template <class Fits>
  Arena* find(const Fits& fits) noexcept {
    Arena* found = nullptr;
    each([&](Arena& arena) {
      if (fits(arena)) found = &arena;
    });
    return found;
  }

  // Most arenas of the process, each of which serves one context. A new context reuses the arena of
  // an ended context of the same device, if there is one.
  static constexpr std::uint32_t most_arenas = 256;
  const Peers& peers_;
  std::atomic<bool> meshes_;  // true if mesh() may be called
  const bool by_kernel_;      // true if mesh() is to copy with a kernel
  FutexLock lock_;
  // Number of entries of `arenas_` in use. It never falls.
  std::atomic<std::uint32_t> count_{0};
  std::array<std::atomic<Arena*>, most_arenas> arenas_{};
  Deferred<ArenaBlock> deferred_;
  // Handles of contexts for which no arena could be opened; 0 marks an empty entry. Requests of
  // these contexts go to the driver at once. A hash of the handle gives its entry, which holds the
  // latest such handle.
  std::array<std::atomic<std::uint64_t>, 16> without_{};
};

}  // namespace cuwarden::pool
