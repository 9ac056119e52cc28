// An arena holds the memory for one context's small and badly rounded requests, in one wide range
// of addresses. Blocks lie side by side, without the driver's rounding and slabs, and only pages
// that hold a block have memory. A page whose last block was freed keeps its memory for the next
// block, until give_back() is called.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/device_access.hpp"
#include "runtime_hooks/pool/packing.hpp"

namespace cuwarden::pool {

// Figures of an arena.
struct ArenaCounts {
  std::uint64_t held_bytes = 0;  // Bytes of device memory that the arena holds.
  std::uint64_t live_bytes = 0;  // Bytes that the program asked for and has not freed.
  std::uint64_t idle_bytes = 0;  // Bytes of `held_bytes` whose pages hold no block.
  // Blocks that were ever handed out, and the bytes asked for in them.
  std::uint64_t served_count = 0, served_bytes = 0;
  std::uint64_t returned_bytes = 0;  // Bytes that were ever given back to the device.
  // Totals since the start: pages that came to share memory by meshing, bytes that meshing gave
  // back, and nanoseconds of the pauses for it.
  std::uint64_t meshed_pages = 0, meshed_bytes = 0, pause_ns = 0;
  // Bytes at addresses of the program that the driver refused to map again after a failed exchange
  // of memory.
  std::uint64_t lost_bytes = 0;
};

// Callbacks by which meshing asks for a pause in which no thread and no stream uses the device's
// memory, and watches the pause's length. Several pauses may follow one another.
struct Pause {
  // Starts a pause; false if none can be had. After false, end() is not called.
  FunctionRef<bool()> begin;
  // True once the pause has lasted as long as it may.
  FunctionRef<bool()> is_over;
  FunctionRef<std::uint64_t()> end;  // Ends the pause and returns its length in nanoseconds.
};

// All functions may be called by several threads at once. They hold the arena's lock during the
// driver's functions for mapped memory: two threads must not map the same page. The driver's
// functions call no foreign code there, but may wait.
class Arena {
 public:
  explicit Arena(const Peers& peers) noexcept : peers_(peers) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  DeviceOrdinal device() const noexcept { return {device_.load(std::memory_order_relaxed)}; }
  ContextId context() const noexcept { return {context_.load(std::memory_order_acquire)}; }

  // Reserves addresses for up to twice the device's memory. `context` must be the current context.
  // An arena is opened once, and again only after end(). Returns false if no addresses are to be
  // had. May throw std::bad_alloc.
  bool open(const driver::RealDriver&, DeviceOrdinal device, ContextId context);
  bool is_open() const noexcept { return !has_ended(); }
  // True if the address lies in the arena's reserved range.
  bool has(std::uint64_t address) const noexcept {
    const std::uint64_t bytes = bytes_.load(std::memory_order_acquire);
    return address - base_.load(std::memory_order_relaxed) < bytes;
  }

  // Returns a new block with memory, or none if memory or addresses are lacking. `now_ns` is the
  // time on the ledger's clock. May throw std::bad_alloc, and has changed nothing then.
  std::optional<Block> allocate(const driver::RealDriver&, std::uint64_t bytes,
                                std::uint64_t now_ns);
  // Marks the block at `start` as freed by the program. The block keeps its addresses and memory,
  // because the device may still use it. Returns none if no live block begins at `start`.
  std::optional<Block> retire(std::uint64_t start) noexcept;
  // Undoes retire(): the block at `start` is live again.
  void unretire(std::uint64_t start) noexcept;
  // Frees a retired block that the device does not use any more. Does nothing if the block was
  // given already.
  void give(const Block&, std::uint64_t now_ns) noexcept;

  // Returns the live block that contains the address; none if there is none.
  std::optional<Block> block_around(std::uint64_t address) noexcept;
  // Remembers that the program set or cleared CU_POINTER_ATTRIBUTE_SYNC_MEMOPS for the block at
  // `start`.
  void set_sync_memops(std::uint64_t start, bool on) noexcept;

  // Gives back to the device all memory that has held no block since before `until_ns`; UINT64_MAX
  // means all idle memory. Returns the bytes given back.
  std::uint64_t give_back(const driver::RealDriver&, std::uint64_t until_ns) noexcept;
  // Makes little used pages share memory, and gives the memory saved back to the device. Blocks
  // keep their addresses. The arena's device must be that of the current context. Does nothing if
  // all of it would save less than `least_bytes`; stops once `enough_bytes` are saved. Returns the
  // bytes saved. May throw std::bad_alloc, and has saved nothing then.
  std::uint64_t mesh(const driver::RealDriver&, const Pause&, std::uint64_t least_bytes,
                     std::uint64_t enough_bytes);
  // Adds `ns` to the total length of pauses, for a pause in which nothing could be moved.
  void was_paused(std::uint64_t ns) noexcept;
  // While set, allocate() refuses, because the context is about to end. Cleared if the context does
  // not end after all.
  void set_closing(bool is_closing) noexcept { is_closing_.store(is_closing); }
  bool is_closing() const noexcept { return is_closing_.load(); }
  // Gives up all addresses and memory, live blocks included, after the context has ended.
  void end(const driver::RealDriver&) noexcept;
  // Lets the device `peer` use the arena's memory, or forbids it (`may` false). Returns the last
  // error of the driver; CUDA_SUCCESS if there was none.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal peer, bool may) noexcept;

  ArenaCounts counts() noexcept;

 private:
  using RunIndex = std::uint32_t;  // Index into `runs_` plus 1; 0 means none.
  struct Page {
    std::uint32_t blocks = 0;  // Blocks that lie in the page, at least in part.
    RunIndex run = 0;  // The run that the page's memory belongs to; 0 if the page has no memory.
    // The next page that shares the same memory, as its index plus 1; 0 if this is the last.
    std::uint32_t next = 0;
  };
  // Pages whose memory is mapped and given back together: either neighbours that were mapped in one
  // piece, or pages that share one page of memory.
  struct Run {
    // The run's first page, and the number of its pages; a count of 0 marks an unused row.
    std::uint64_t first = 0, count = 0;
    // Pages of the run that hold at least one block.
    std::uint64_t pages_in_use = 0;
    // Time at which the run's last block was given; counts only while no page is in use.
    std::uint64_t idle_since_ns = 0;
    // True if the pages share one page of memory.
    bool is_shared = false;

    // Bytes of device memory that the run takes.
    std::uint64_t bytes() const noexcept { return is_shared ? page_bytes : count * page_bytes; }
  };
  class Meshing;

  // Returns the run with this index, which must not be 0.
  Run& run(RunIndex index) noexcept { return runs_[index - 1]; }
  bool has_ended() const noexcept { return bytes_.load(std::memory_order_relaxed) == 0; }
  // Returns the index of the page that contains the address, counted from the start of the range.
  std::uint64_t page_of(std::uint64_t address) const noexcept {
    return (address - base_) / page_bytes;
  }
  std::uint64_t address_of(std::uint64_t page) const noexcept { return base_ + page * page_bytes; }
  bool back(const driver::RealDriver&, const Block&, std::uint64_t now_ns);
  bool map_run(const driver::RealDriver&, std::uint64_t first, std::uint64_t count,
               std::uint64_t now_ns) noexcept;
  std::uint64_t pages_ahead(std::uint64_t first, std::uint64_t limit) const noexcept;
  // Returns the page that follows `page` in the run; `page` must not be the run's last one.
  std::uint64_t page_after(const Run& run, std::uint64_t page) const noexcept {
    return run.is_shared ? pages_[page].next - std::uint64_t{1} : page + 1;
  }
  template <class Visit>
  void each_page(const Run& run, const Visit& visit) {
    std::uint64_t page = run.first;
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const std::uint64_t now = page;
      if (i + 1 < run.count) page = page_after(run, page);
      visit(now);
    }
  }
  bool unmap_run(const driver::RealDriver&, Run&) noexcept;
  void drop_run(Run&) noexcept;
  void use_pages(const Block&) noexcept;

  std::atomic<std::int32_t> device_{-1};
  std::atomic<std::uint64_t> context_{0};
  std::atomic<bool> is_closing_{false};
  const Peers& peers_;
  std::atomic<std::uint64_t> base_{0};
  // Bytes of the reserved range; 0 before open() and after end().
  std::atomic<std::uint64_t> bytes_{0};
  FutexLock lock_;
  CUmemAllocationProp where_{};
  Packing packing_;
  std::vector<Page> pages_;  // One entry for each page up to the last one that ever held a block.
  std::vector<Run> runs_;
  std::vector<RunIndex> unused_runs_;
  ArenaCounts counts_;
};

}  // namespace cuwarden::pool
