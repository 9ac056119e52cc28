// An arena holds device memory for those requests of one context that the driver would serve
// wastefully. Blocks (one for each request) lie side by side in one wide range of reserved
// addresses, without the driver's rounding and slabs. A page (2 MiB) gets memory when a block needs
// it. A page whose last block was freed keeps its memory for the next block, until give_back() is
// called.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/arena_counts.hpp"
#include "runtime_hooks/pool/copy_kernel.hpp"
#include "runtime_hooks/pool/device_access.hpp"
#include "runtime_hooks/pool/mesh_request.hpp"
#include "runtime_hooks/pool/packing/packing.hpp"

namespace cuwarden::pool {

// The pool's memory for one context: one wide range of reserved addresses, in which a page (2 MiB)
// gets memory when a block needs it. A block is memory that was handed out for one request.
//
// All functions may be called by several threads at once. They hold the arena's lock while they
// call the driver's functions for mapped memory, so that two threads do not map the same page.
// These functions of the driver call no code of the program, but may wait. If the lock cannot be
// taken (FutexLock::lock_for_long()), a function does nothing, and returns none, false, 0 or
// CUDA_SUCCESS.
class Arena {
 public:
  // `peers`, the record of the devices that may use each other's memory, outlives the arena.
  explicit Arena(const Peers& peers) noexcept : peers_(peers) {}

  // Returns the device that the arena was last opened for, also after end(); no_device before the
  // first open().
  DeviceOrdinal device() const noexcept { return {device_.load(std::memory_order_relaxed)}; }
  // Returns the context that the arena was last opened for, also after end(); 0 before the first
  // open().
  ContextId context() const noexcept { return {context_.load(std::memory_order_acquire)}; }

  // Reserves a range of addresses, twice as large as the device's memory. If the process cannot
  // have so many, smaller ranges are tried, down to a quarter of the device's memory. `context`
  // must be the current context, or the primary one of a current green context; `device` is its
  // device. The arena must be new, or end() must have been called. Returns false, with nothing
  // changed, if the arena is open already, the device cannot map memory, or no addresses can be
  // reserved. May throw std::bad_alloc, and has changed nothing then.
  bool open(const driver::RealDriver&, DeviceOrdinal device, ContextId context);
  // Loads the kernel with which mesh() copies blocks, into the arena's context. Does nothing if
  // that context is not current, such as while a green one is. To be called after open(). If it is
  // not called, or the driver refuses, mesh() makes its copies by the driver's functions for
  // copies, which takes longer. Takes the arena's lock only after the driver has loaded the kernel.
  void load_copy_kernel(const driver::RealDriver&) noexcept;
  // True if the arena has a reserved range of addresses: after open(), until end().
  bool is_open() const noexcept { return !has_ended(); }
  // True if the address lies in the arena's reserved range, in a block or not.
  bool has(std::uint64_t address) const noexcept {
    const std::uint64_t bytes = bytes_.load(std::memory_order_acquire);
    return address - base_.load(std::memory_order_relaxed) < bytes;
  }

  // Returns a new block of `bytes` (memory for one request), with device memory behind it. Returns
  // none if the driver refuses memory, no addresses are left or `bytes` is 0. Returns none, too, if
  // the arena is not open or its context is about to end. `now_ns` is the time on the ledger's
  // clock. `meshes`: true if mesh() may be called. Pages then get memory several at a time, since
  // mesh() can give empty ones of them back. May throw std::bad_alloc; then no block is handed out.
  std::optional<Block> allocate(const driver::RealDriver&, std::uint64_t bytes,
                                std::uint64_t now_ns, bool meshes);
  // Marks the block that begins at the address `start` as freed by the program, and returns it. The
  // block keeps its addresses and memory until give(), because the device may still use them.
  // Returns none if no block begins at `start` or the program has freed it already.
  std::optional<Block> retire(std::uint64_t start) noexcept;
  // Makes the block that begins at the address `start` live again, after retire() has marked it as
  // freed: the program's free has failed. Does nothing if no block begins there.
  void unretire(std::uint64_t start) noexcept;
  // Lets later blocks use the memory of a block that retire() has returned. The device must not use
  // the block any more. Does nothing if give() was called for this block before. `now_ns` is the
  // time on the ledger's clock.
  void give(const Block&, std::uint64_t now_ns) noexcept;

  // Returns the block in whose requested bytes the address lies and that the program has not freed;
  // none if there is none.
  std::optional<Block> block_around(std::uint64_t address) noexcept;
  // Records that the program has set (`on` true) or cleared CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the
  // block that begins at the address `start`. Does nothing if no block begins there.
  void set_sync_memops(std::uint64_t start, bool on) noexcept;

  // Gives memory without blocks back to the driver. Memory goes in runs (groups of pages whose
  // memory is given back together): those that have held no block since `until_ns`, a time on the
  // ledger's clock. UINT64_MAX means all runs without blocks. Memory that mesh() has kept for its
  // next call stays. Host memory of an evicted run goes back, too. Returns the bytes of device
  // memory given back.
  std::uint64_t give_back(const driver::RealDriver&, std::uint64_t until_ns) noexcept;
  // Makes little used pages share memory, and gives the saved memory back to the driver. Blocks are
  // copied in pauses of the program, which `Pause` begins and ends, but keep their addresses. The
  // arena's device must be that of the current context. Returns the bytes saved. May throw
  // std::bad_alloc, and has saved nothing then.
  std::uint64_t mesh(const driver::RealDriver&, Pause&, const MeshGoal&);
  // Brings blocks back to device memory that mesh() has left in host memory (class Eviction), in a
  // pause of the program. The caller has seen that the device has room for them. The arena's device
  // must be that of the current context. `verifies`: true if the copy is compared with its
  // original. Does nothing if no blocks lie in host memory, or if the driver refuses.
  void bring_back_evicted(const driver::RealDriver&, Pause&, bool verifies) noexcept;
  // Gives back to the driver the memory that mesh() has kept for its next call. To be called before
  // a request is refused. Returns the bytes given back; 0 if none was kept.
  std::uint64_t give_back_start_memory(const driver::RealDriver&) noexcept;
  // Returns the bytes that mesh() would save now if it saved all it can. Makes a plan, and moves
  // nothing. Returns 0 if host memory for the plan is lacking.
  std::uint64_t meshable_bytes(const driver::RealDriver&) noexcept;
  // Adds `ns` nanoseconds to ArenaCounts::pause_ns, for a pause of the program in which no memory
  // was moved.
  void was_paused(std::uint64_t ns) noexcept;
  // Marks the arena, because its context is about to end: allocate() then returns none.
  // `is_closing` false removes the mark, because the driver did not end the context.
  void set_closing(bool is_closing) noexcept { is_closing_.store(is_closing); }
  // True if set_closing() has marked the arena: its context is about to end, or has ended. False
  // again after the next open().
  bool is_closing() const noexcept { return is_closing_.load(); }
  // Gives back all addresses and memory, also of blocks that the program has not freed. Must be
  // called after the context has ended. open() may then be called again. If the driver refuses to
  // unmap some memory, the addresses stay reserved until the process ends. The totals of counts()
  // stay.
  void end(const driver::RealDriver&) noexcept;
  // Lets the device `peer` use the memory that the arena has now, or forbids it (`may` false).
  // Memory that is mapped later is open to the devices that the constructor's Peers object names
  // then. Returns the driver's last error; CUDA_SUCCESS if there was none.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal peer, bool may) noexcept;

  // Returns the arena's figures; all are 0 if the arena's lock cannot be taken.
  ArenaCounts counts() noexcept;

 private:
  // Number of a run (pages whose memory is given back together): its index in `runs_` plus 1; 0
  // means no run.
  using RunIndex = std::uint32_t;
  // A page of addresses (2 MiB) of the arena, with or without memory.
  struct Page {
    // Number of blocks of which at least a part lies in the page: live ones, and those that were
    // freed by the program but may still be used by the device.
    std::uint32_t blocks = 0;
    // Number of the run that the page's memory belongs to; 0 if the page has no memory.
    RunIndex run = 0;
    // Set in the first page of a member of a shared run: the first page of the run's next member,
    // as its index in `pages_` plus 1; 0 if this is the last member, or in all other pages.
    std::uint32_t next = 0;
    // Number of pages between the start of the page's member and the page; 0 if the page's run is
    // not shared.
    std::uint32_t offset = 0;
    // Number of parts for which Packing::announce_withheld() was called when meshing moved the page
    // to this memory; 0 if it did not. They stay announced until the page loses the memory. The
    // first page of a lost run (Run::is_lost) also has the parts of the move that failed.
    std::uint32_t withheld_parts = 0;
  };
  // Pages whose memory is given back together. They are either neighbours that were mapped in one
  // piece, or the members of a shared run. A member is as many neighbours as the run has pages of
  // memory; all members are mapped to that memory, each in one piece.
  struct Run {
    // Index in `pages_` of the run's first page, and the number of its pages. A count of 0 marks an
    // unused row of `runs_`.
    std::uint64_t first = 0, count = 0;
    // Number of the run's pages of memory, and of the pages of each member.
    std::uint64_t span = 0;
    // Number of the run's pages that hold at least one block.
    std::uint64_t pages_in_use = 0;
    // Time on the ledger's clock since which no page of the run holds a block. Means nothing while
    // `pages_in_use` is not 0.
    std::uint64_t idle_since_ns = 0;
    // True if the run's members share its memory. There may be a single member left.
    bool is_shared = false;
    // Index in `pages_` of the first page of the run's host: the only member that takes new blocks.
    // They lie at offsets that no block of the run's members takes. Means nothing unless
    // `is_shared`.
    std::uint64_t host = 0;
    // True if addresses of the run have no memory any more (ArenaCounts::lost_bytes). Then no page
    // takes new blocks.
    bool is_lost = false;
    // Value of Arena::changes_ when a page of the run last got a block, or when a page with blocks
    // last joined the run; 0 if no block has come to the run.
    std::uint64_t filled_at = 0;

    // Returns the bytes of device memory that the run (a group of pages of addresses) takes; of
    // host memory, if the run is evicted. Pages of a lost run count, too, although some have no
    // memory any more.
    std::uint64_t bytes() const noexcept { return span * page_bytes; }
  };
  // Planned moves of meshing that were not made. They are kept for the next request that meshing is
  // to serve. They take at most 32 bytes of host memory for each page with memory.
  struct LeftOver {
    // The move of `span` neighbouring pages of addresses to the memory of a target. A target is
    // `span` pages of memory.
    struct Move {
      // Index of the first page in Arena::pages_: its number in the arena's range, from 0.
      std::uint64_t page = 0;
      // `item`: number of the item that the pages belong to. An item is `span` pages of addresses,
      // or all addresses that share the memory of these already; all of an item moves to one
      // target. Items are numbered from 0: over the whole plan if it moves pages to new memory, but
      // in each run anew if it moves them to memory of the arena. `target`: number of the memory
      // that the item moves to.
      std::uint32_t item = 0, target = 0;
    };
    // A run (a group of pages) that may be moved: its number, the index of its first move in
    // LeftOver::moves, and the number of its moves.
    struct OfRun {
      RunIndex run = 0;
      std::uint32_t first_move = 0, moves = 0;
    };
    std::vector<Move> moves{};
    std::vector<OfRun> runs{};
    // For each target (memory to which pages move), in the order of their numbers: number of the
    // run that has this memory; 0 for new memory.
    std::vector<RunIndex> targets{};
    // Value of Arena::changes_ when the moves were left over. A run that was filled later
    // (Run::filled_at) is neither moved nor used as a target.
    std::uint64_t made_at = 0;
    // Bytes that blocks of the arena took (Packing::taken_bytes()) when meshing planned these
    // moves.
    std::uint64_t taken_bytes = 0;
    // Number of pages that each move moves, and that each target has.
    std::uint32_t span = 1;
  };
  class Eviction;
  class Meshing;
  class Passes;

  // Returns the run with the number `index` (its index in `runs_` plus 1), which must not be 0.
  Run& run(RunIndex index) noexcept { return runs_[index - 1]; }
  // True if the arena has no addresses: before open() and after end().
  bool has_ended() const noexcept { return bytes_.load(std::memory_order_relaxed) == 0; }
  // Returns the index in `pages_` of the page (2 MiB) that contains the address, which must lie in
  // the arena's reserved range.
  std::uint64_t page_of(std::uint64_t address) const noexcept {
    return (address - base_) / page_bytes;
  }
  // Returns the address at which the page with the index `page` begins.
  std::uint64_t address_of(std::uint64_t page) const noexcept { return base_ + page * page_bytes; }
  // Returns a new block, with memory behind it. The caller must count it in `counts_` and by
  // use_pages(). Returns none if the driver refuses memory, or if no addresses are left. `now_ns`
  // is the time on the ledger's clock. `meshes`: true if mesh() may be called. May throw
  // std::bad_alloc, and has handed out no block then.
  std::optional<Block> take(const driver::RealDriver&, std::uint64_t bytes, Placement,
                            std::uint64_t now_ns, bool meshes);
  // Maps memory for those pages of the block that have none: if `meshes` is true, in pieces of
  // several pages, also for some pages after the block; otherwise page by page. Returns false if
  // the driver refuses; some of the pages may have got memory then. `now_ns` is the time on the
  // ledger's clock. May throw std::bad_alloc, and has mapped nothing then.
  bool back(const driver::RealDriver&, const Block&, std::uint64_t now_ns, bool meshes);
  // Maps new memory at `count` pages, from the page with the index `first` on, and enters them in
  // `runs_` as one run. The caller has reserved host memory for one more row. Returns false, with
  // nothing mapped, if the driver refuses. `now_ns` is the time on the ledger's clock.
  bool map_run(const driver::RealDriver&, std::uint64_t first, std::uint64_t count,
               std::uint64_t now_ns) noexcept;
  // Maps the memory behind `handle` at the page with the index `page`, and grants access to it.
  // `bytes`: the memory's size. Returns false, with nothing mapped, if the driver refuses.
  bool map_again(const driver::RealDriver&, std::uint64_t page, std::uint64_t bytes,
                 CUmemGenericAllocationHandle handle) noexcept;
  // Enters the run as lost (Run::is_lost): counts its bytes, and withholds its free addresses. The
  // parts for that were announced to Packing before.
  void lose(Run&) noexcept;
  // Brings the evicted run back in a pause of the program. Returns false if there is none, no pause
  // can be had or the driver refuses. The caller holds the arena's lock.
  bool bring_back_in_a_pause(const driver::RealDriver&, Pause&, bool verifies) noexcept;
  // True if the run has host memory in place of device memory (class Eviction).
  bool is_evicted(const Run& run) const noexcept {
    return evicted_.is_on_host && &run == &runs_[evicted_.run - 1];
  }
  // Returns the number of successive pages without memory, from the page with the index `first` on;
  // at most `limit`. Pages that have no entry in `pages_` are not counted.
  std::uint64_t pages_ahead(std::uint64_t first, std::uint64_t limit) const noexcept;
  // Returns the index of the first page of the member (Run) that the page belongs to, which must be
  // one of a shared run.
  std::uint64_t member_of(std::uint64_t page) const noexcept { return page - pages_[page].offset; }
  // True if the page, which has memory, belongs to a shared run's member that takes no new blocks.
  bool is_guest(std::uint64_t page) const noexcept {
    const Run& run = runs_[pages_[page].run - 1];
    return run.is_shared && member_of(page) != run.host;
  }
  // True if no page of the member has a block. `first`: the index of the member's first page.
  bool is_unused(const Run& run, std::uint64_t first) const noexcept {
    std::uint64_t page = first;
    while (page != first + run.span && pages_[page].blocks == 0) ++page;
    return page == first + run.span;
  }
  // Calls visit(first) for each member of a shared run, with the index of the member's first page;
  // once for another run. `visit` may change the member's entries in `pages_`.
  template <class Visit>
  void each_member(const Run& run, const Visit& visit) {
    std::uint64_t next = run.first;
    for (std::uint64_t left = run.count / run.span; left != 0; --left) {
      const std::uint64_t first = next;
      if (left > 1) next = pages_[first].next - std::uint64_t{1};
      visit(first);
    }
  }
  // Calls visit(index) for each page of the run, with the page's index in `pages_`. `visit` may
  // change that entry of `pages_`.
  template <class Visit>
  void each_page(const Run& run, const Visit& visit) {
    each_member(run, [&](std::uint64_t first) {
      for (std::uint64_t page = first; page != first + run.span; ++page) visit(page);
    });
  }
  // Unmaps those members of a shared run that have no block. The member that takes new blocks
  // (Run::host) stays mapped. The run keeps its memory. A member that the driver refuses to unmap
  // stays in the run.
  void unmap_unused_members(const driver::RealDriver&, Run&) noexcept;
  // Unmaps the members without a block of all shared runs that hold blocks. The members that take
  // new blocks (Run::host) stay mapped.
  void unmap_unused_members(const driver::RealDriver&) noexcept;
  // Unmaps the run's memory and removes the run. Returns false if the driver refuses: the run is
  // then kept, but a shared run may have lost some of its members.
  bool unmap_run(const driver::RealDriver&, Run&) noexcept;
  // Enters the page (its index in `pages_`) as one of no run. Its blocks, if it has any, stay
  // entered. Of a member's pages, the first must leave first.
  void leave_run(std::uint64_t page) noexcept;
  // Enters the pages of a member of the run as pages without memory, after the caller has unmapped
  // it. `first`: the index of the member's first page.
  void lose_memory(const Run&, std::uint64_t first) noexcept;
  // Empties the run's row in `runs_` and enters its pages as pages of no run. Pages without a block
  // are then bare, but not if a page of the same unit has one: `unit` neighbours, counted from the
  // start of the member. The caller must have unmapped the bare ones before.
  void drop_run(Run&, std::uint64_t unit = 1) noexcept;
  // Adds the run's memory without blocks to `idle_bytes` (no page has a block) or
  // `partly_idle_bytes` of `counts_` (`sign` 1), or subtracts it (`sign` -1). To be called with -1
  // before each change of that memory, such as of Run::pages_in_use, and with 1 after it. Does
  // nothing for an evicted run.
  void count_unused(const Run& run, int sign) noexcept;
  // Adds 1 to Page::blocks of each page in which a part of the block lies. All these pages must
  // have memory.
  void use_pages(const Block&) noexcept;
  // Gives the memory in `start_memory_` back to the driver. Returns its bytes, without those of
  // pages that the driver refuses to release.
  std::uint64_t release_start_memory(const driver::RealDriver&) noexcept;
  // Has the driver make memory for `start_memory_`, which must be empty: eight pages at most, and
  // no more than `most_bytes`. Stops when the driver refuses. Returns the bytes made.
  std::uint64_t take_start_memory(const driver::RealDriver&, std::uint64_t most_bytes) noexcept;

  std::atomic<std::int32_t> device_{-1};
  std::atomic<std::uint64_t> context_{0};
  std::atomic<bool> is_closing_{false};
  const Peers& peers_;
  // Address at which the arena's reserved range begins. Means nothing while `bytes_` is 0.
  std::atomic<std::uint64_t> base_{0};
  // Bytes of the arena's reserved range of addresses; 0 before open() and after end().
  std::atomic<std::uint64_t> bytes_{0};
  FutexLock lock_;
  // Properties with which cuMemCreate makes the arena's memory: the device, and GPUDirect RDMA.
  CUmemAllocationProp where_{};
  Packing packing_;
  // One entry for each page (2 MiB) of the arena's range, from the range's start at least to the
  // last page that ever had memory.
  std::vector<Page> pages_;
  // Rows of all runs (pages whose memory is given back together), and rows that no run uses.
  std::vector<Run> runs_;
  // Numbers (index plus 1) of the rows of `runs_` that no run uses.
  std::vector<RunIndex> unused_runs_;
  // Number of changes so far that can make a planned move wrong: blocks that were handed out, and
  // pages that joined a run. A move planned before such a change might put two blocks at one offset
  // of the same memory.
  std::uint64_t changes_ = 0;
  // Moves that the last plan of meshing has left over; no entries if there are none.
  LeftOver left_over_;
  // The last plan that moves pages with their neighbours and would have saved too little: its gain
  // (UINT64_MAX / 2: there was none), and the bytes that blocks took (Packing::taken_bytes()) and
  // that the arena held.
  struct {
    std::uint64_t taken_bytes = 0, held_bytes = 0, gain = UINT64_MAX / 2;
  } neighbours_plan_;
  // `run`: number of the run that class Eviction has chosen; 0: none. `is_on_host`: true while that
  // run has host memory in place of device memory.
  struct {
    RunIndex run = 0;
    bool is_on_host = false;
  } evicted_;
  // The driver's handles of pages of memory that are mapped at no address; 0: no page. The next
  // mesh() gives them back first, so that the driver has memory for new pages. They count as held
  // and idle. Eight pages are the most that growth maps ahead (16 MiB).
  std::array<CUmemGenericAllocationHandle, 8> start_memory_{};
  // Number of members of shared runs that hold no block. Members that take new blocks (Run::host)
  // do not count.
  std::uint64_t unused_members_ = 0;
  ArenaCounts counts_;
  // True once meshing has found that two addresses of one page show the same contents on this
  // device.
  bool is_coherent_ = false;
  // The kernel that copies blocks that are moved; an empty object if it is not loaded.
  CopyKernel copy_kernel_;
};

}  // namespace cuwarden::pool
