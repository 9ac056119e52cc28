// The memory of one context's small and badly rounded requests, in one wide range of addresses:
// pieces lie side by side, without the driver's rounding and its slabs, and only the pages that
// hold some have memory. What a page's last piece leaves is kept for the next one, and is given
// back when somebody asks for it.
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

struct ArenaCounts {
  std::uint64_t held_bytes = 0;                      // of the device
  std::uint64_t live_bytes = 0;                      // asked for, and not freed
  std::uint64_t idle_bytes = 0;                      // of what is held: nobody's
  std::uint64_t served_count = 0, served_bytes = 0;  // ever
  std::uint64_t returned_bytes = 0;                  // ever given back to the device
  // Ever: pages that came to share memory, what that gave back, and for how long it was paused.
  std::uint64_t meshed_pages = 0, meshed_bytes = 0, pause_ns = 0;
  std::uint64_t lost_bytes = 0;  // what the driver would not map again at the program's addresses
};

// Asks for a pause in which nobody uses the device's memory, and watches its length; there may be
// some in turn.
struct Pause {
  FunctionRef<bool()> begin;  // false: there is none to be had
  FunctionRef<bool()> is_over;
  FunctionRef<std::uint64_t()> end;  // its length, in nanoseconds
};

// All functions may be called by several threads. They hold the arena's lock over the driver's
// functions for mapped memory, which call nobody but may wait: two threads must not map the same
// page.
class Arena {
 public:
  explicit Arena(const Peers& peers) noexcept : peers_(peers) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  DeviceOrdinal device() const noexcept { return {device_.load(std::memory_order_relaxed)}; }
  ContextId context() const noexcept { return {context_.load(std::memory_order_acquire)}; }

  // Addresses for twice what the device has, in the current context, which is `context`: at first,
  // or again once it has ended. False: there are none. May throw std::bad_alloc.
  bool open(const driver::RealDriver&, DeviceOrdinal device, ContextId context);
  bool is_open() const noexcept { return !has_ended(); }
  // Whether it is one of those.
  bool has(std::uint64_t address) const noexcept {
    const std::uint64_t bytes = bytes_.load(std::memory_order_acquire);
    return address - base_.load(std::memory_order_relaxed) < bytes;
  }

  // None: there is no memory, or no address. May throw std::bad_alloc, and has done nothing then.
  std::optional<Block> allocate(const driver::RealDriver&, std::uint64_t bytes,
                                std::uint64_t now_ns);
  // Freed by the program, and still at its place: the device may be at work on it. None: no block
  // begins there.
  std::optional<Block> retire(std::uint64_t start) noexcept;
  void unretire(std::uint64_t start) noexcept;
  // What was retired, and is not used by the device any more.
  void give(const Block&, std::uint64_t now_ns) noexcept;

  std::optional<Block> block_around(std::uint64_t address) noexcept;
  void set_sync_memops(std::uint64_t start, bool on) noexcept;

  // Memory without a block since before `until_ns` goes back to the device. How much.
  std::uint64_t give_back(const driver::RealDriver&, std::uint64_t until_ns) noexcept;
  // Blocks stay at their addresses, but pages that are little used come to share memory, and what
  // that saves goes back to the device: how much. The arena's device is that of the current
  // context. Nothing is done where all of it were less than `least_bytes`, and no more than
  // `enough_bytes` where that is enough. May throw std::bad_alloc, and has gained nothing then.
  std::uint64_t mesh(const driver::RealDriver&, const Pause&, std::uint64_t least_bytes,
                     std::uint64_t enough_bytes);
  void was_paused(std::uint64_t ns) noexcept;
  // The context is about to end: nothing is allocated any more. Undone where it does not.
  void set_closing(bool is_closing) noexcept { is_closing_.store(is_closing); }
  bool is_closing() const noexcept { return is_closing_.load(); }
  // All of it goes, with what is live: the context has ended.
  void end(const driver::RealDriver&) noexcept;
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal peer, bool may) noexcept;

  ArenaCounts counts() noexcept;

 private:
  using RunIndex = std::uint32_t;  // plus 1; 0: none
  struct Page {
    std::uint32_t blocks = 0;  // that lie in it, at least in part
    RunIndex run = 0;          // its memory
    std::uint32_t next = 0;    // plus 1; 0: none. Of those that share that
  };
  // Pages whose memory goes together: they lie side by side and were mapped together, or they share
  // one page of memory.
  struct Run {
    std::uint64_t first = 0, count = 0;  // pages; 0: unused
    std::uint64_t pages_in_use = 0;
    std::uint64_t idle_since_ns = 0;
    bool is_shared = false;

    std::uint64_t bytes() const noexcept { return is_shared ? page_bytes : count * page_bytes; }
  };
  class Meshing;

  Run& run(RunIndex index) noexcept { return runs_[index - 1]; }
  bool has_ended() const noexcept { return bytes_.load(std::memory_order_relaxed) == 0; }
  std::uint64_t page_of(std::uint64_t address) const noexcept {
    return (address - base_) / page_bytes;
  }
  std::uint64_t address_of(std::uint64_t page) const noexcept { return base_ + page * page_bytes; }
  bool back(const driver::RealDriver&, const Block&, std::uint64_t now_ns);
  bool map_run(const driver::RealDriver&, std::uint64_t first, std::uint64_t count,
               std::uint64_t now_ns) noexcept;
  std::uint64_t pages_ahead(std::uint64_t first, std::uint64_t limit) const noexcept;
  // The page after it in its run.
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
  std::atomic<std::uint64_t> bytes_{0};  // 0: no addresses yet, or none any more
  FutexLock lock_;
  CUmemAllocationProp where_{};
  Packing packing_;
  std::vector<Page> pages_;  // up to the last one that was ever used
  std::vector<Run> runs_;
  std::vector<RunIndex> unused_runs_;
  ArenaCounts counts_;
};

}  // namespace cuwarden::pool
