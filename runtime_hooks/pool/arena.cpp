#include "runtime_hooks/pool/arena.hpp"

#include <algorithm>
#include <bit>

namespace cuwarden::pool {
namespace {

// An arena that grows maps pieces of up to a sixteenth of its size, because mapping one page takes
// as long as mapping many. A piece has 16 MiB at most: larger ones make meshing slower (measured).
// Only a block that needs more gets a larger piece. Of every 512 MiB that the arena holds, the
// first 8 MiB are mapped without pages ahead of need. The next 56 MiB come in pieces of up to
// 8 MiB. On a full device, meshing can move other pages into single pages and into pieces of four
// pages without new memory.
constexpr std::uint64_t growth_share = 16, most_ahead_bytes = std::uint64_t{16} << 20,
                        small_pieces_each_bytes = std::uint64_t{512} << 20,
                        single_pages_bytes = std::uint64_t{8} << 20,
                        small_pieces_bytes = std::uint64_t{64} << 20,
                        small_piece_bytes = std::uint64_t{8} << 20;

std::uint64_t bytes_ahead(std::uint64_t held) {
  const std::uint64_t at = held % small_pieces_each_bytes;
  if (at < single_pages_bytes) return 0;
  return std::min(std::bit_floor(held / growth_share + 1),
                  at < small_pieces_bytes ? small_piece_bytes : most_ahead_bytes);
}

}  // namespace

bool Arena::open(const driver::RealDriver& real, DeviceOrdinal device, ContextId context) {
  const Locked held(lock_, Locked::ForLong{});
  std::size_t free = 0, total = 0;
  if (!held || !has_ended() || !maps_virtual_memory(real, device) ||
      real.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
    return false;
  // A limit on the process's addresses may leave room for a smaller range only.
  for (std::uint64_t wanted = 2 * total; wanted >= total / 4 && wanted != 0; wanted /= 2) {
    const std::uint64_t bytes = whole_addresses(wanted);
    CUdeviceptr start = 0;
    if (real.cuMemAddressReserve(&start, bytes, 0, 0, 0) != CUDA_SUCCESS) continue;
    try {
      packing_.add_bare_pages(start, bytes);
    } catch (...) {
      real.cuMemAddressFree(start, bytes);
      throw;
    }
    where_ = on_device(real, device);
    is_coherent_ = false;
    counts_.unshared_bytes = 0;
    device_.store(device.value, std::memory_order_relaxed);
    context_.store(context.value, std::memory_order_release);
    is_closing_.store(false);
    base_.store(start, std::memory_order_relaxed);
    bytes_.store(bytes, std::memory_order_release);
    return true;
  }
  return false;
}

// While the driver loads the kernel, it may wait for the loader's lock. A thread that loads a
// library has that one, and may ask the pool for memory.
void Arena::load_copy_kernel(const driver::RealDriver& real) noexcept {
  const ContextId context = this->context();
  CopyKernel loaded;
  if (!loaded.load(real, context)) return;
  const Locked held(lock_, Locked::ForLong{});
  if (held && !has_ended() && !is_closing() && this->context() == context) copy_kernel_ = loaded;
}

// Returns how many pages from `first` on have no memory, and therefore no block; at most `limit`.
std::uint64_t Arena::pages_ahead(std::uint64_t first, std::uint64_t limit) const noexcept {
  const std::uint64_t end = std::min(first + limit, pages_.size());
  std::uint64_t at = first;
  while (at < end && pages_[at].run == 0) ++at;
  return at - std::min(at, first);
}

// Maps new memory for `count` pages and enters them as a run. The caller has reserved a free row in
// runs_. Returns false if the driver refuses.
bool Arena::map_run(const driver::RealDriver& real, std::uint64_t first, std::uint64_t count,
                    std::uint64_t now_ns) noexcept {
  const std::uint64_t address = address_of(first), bytes = count * page_bytes;
  if (map_new(real, address, bytes, where_) != CUDA_SUCCESS) return false;
  if (Peers::grant(real, address, bytes, device(), peers_.of(device())) != CUDA_SUCCESS) {
    real.cuMemUnmap(address, bytes);
    return false;
  }
  if (unused_runs_.empty()) {
    runs_.emplace_back();
    unused_runs_.push_back(static_cast<RunIndex>(runs_.size()));
  }
  const RunIndex made = unused_runs_.back();
  unused_runs_.pop_back();
  runs_[made - 1] = {.first = first, .count = count, .span = count, .idle_since_ns = now_ns};
  for (std::uint64_t page = first; page < first + count; ++page) pages_[page].run = made;
  packing_.gain_memory(address, bytes);
  counts_.held_bytes += bytes;
  count_unused(runs_[made - 1], 1);
  return true;
}

void Arena::count_unused(const Run& run, int sign) noexcept {
  if (is_evicted(run)) return;
  const std::uint64_t pages = run.is_shared ? 0 : run.count - run.pages_in_use;
  const std::uint64_t bytes = run.pages_in_use == 0 ? run.bytes() : pages * page_bytes;
  std::uint64_t& counted = run.pages_in_use == 0 ? counts_.idle_bytes : counts_.partly_idle_bytes;
  counted += sign > 0 ? bytes : -bytes;
}

bool Arena::map_again(const driver::RealDriver& real, std::uint64_t page, std::uint64_t bytes,
                      CUmemGenericAllocationHandle handle) noexcept {
  const std::uint64_t address = address_of(page);
  if (real.cuMemMap(address, bytes, 0, handle, 0) != CUDA_SUCCESS) return false;
  if (Peers::grant(real, address, bytes, device(), peers_.of(device())) == CUDA_SUCCESS)
    return true;
  real.cuMemUnmap(address, bytes);
  return false;
}

void Arena::lose(Run& run) noexcept {
  counts_.lost_bytes += run.bytes();
  run.is_lost = true;
  each_page(run, [&](std::uint64_t page) { packing_.withhold(address_of(page), page_bytes); });
}

// Unmaps the run and drops it; returns false if the driver refuses. A run of neighbours is
// then unchanged. A shared run may be unmapped in part: the members that were unmapped do not
// belong to it any more.
bool Arena::unmap_run(const driver::RealDriver& real, Run& run) noexcept {
  while (run.count > run.span) {
    const std::uint64_t gone = run.first;
    if (real.cuMemUnmap(address_of(gone), run.bytes()) != CUDA_SUCCESS) return false;
    run.first = pages_[gone].next - std::uint64_t{1};
    run.count -= run.span;
    lose_memory(run, gone);
  }
  if (real.cuMemUnmap(address_of(run.first), run.bytes()) != CUDA_SUCCESS) return false;
  drop_run(run);
  return true;
}

void Arena::leave_run(std::uint64_t page) noexcept {
  Page& left = pages_[page];
  const Run& run = this->run(left.run);
  if (left.offset == 0 && is_guest(page) && is_unused(run, page)) --unused_members_;
  if (run.is_shared || run.is_lost) {
    packing_.release(address_of(page), page_bytes);
    packing_.renounce_withheld(left.withheld_parts);
  }
  left = {.blocks = left.blocks};
}

void Arena::lose_memory(const Run& run, std::uint64_t first) noexcept {
  for (std::uint64_t page = first; page != first + run.span; ++page) {
    leave_run(page);
    if (pages_[page].blocks == 0) packing_.lose_memory(address_of(page), page_bytes);
  }
}

// The members that stay keep their order. The host is always one of them.
void Arena::unmap_unused_members(const driver::RealDriver& real, Run& run) noexcept {
  std::uint64_t at = run.first, stays = UINT64_MAX;
  for (std::uint64_t left = run.count / run.span; left != 0; --left) {
    const std::uint32_t next = pages_[at].next;
    if (at != run.host && is_unused(run, at) &&
        real.cuMemUnmap(address_of(at), run.bytes()) == CUDA_SUCCESS) {
      if (stays == UINT64_MAX)
        run.first = next - std::uint64_t{1};
      else
        pages_[stays].next = next;
      run.count -= run.span;
      lose_memory(run, at);
    } else {
      stays = at;
    }
    at = next - std::uint64_t{1};
  }
}

void Arena::unmap_unused_members(const driver::RealDriver& real) noexcept {
  if (unused_members_ == 0) return;
  for (Run& run : runs_)
    if (run.is_shared && run.pages_in_use != 0) unmap_unused_members(real, run);
}

// Removes the run's row and detaches its pages.
void Arena::drop_run(Run& run, std::uint64_t unit) noexcept {
  const RunIndex gone = pages_[run.first].run;
  (is_evicted(run) ? counts_.evicted_bytes : counts_.held_bytes) -= run.bytes();
  count_unused(run, -1);
  if (gone == evicted_.run) evicted_ = {};
  std::uint64_t left = unit;
  bool are_used = false;
  each_page(run, [&](std::uint64_t page) {
    are_used = are_used || pages_[page].blocks != 0;
    leave_run(page);
    if (--left != 0) return;
    if (!are_used) packing_.lose_memory(address_of(page + 1 - unit), unit * page_bytes);
    left = unit;
    are_used = false;
  });
  run = {};
  unused_runs_.push_back(gone);
}

// Maps memory for all pages that the block touches, and for some pages after them where the arena
// grows. Returns false if the driver refuses.
bool Arena::back(const driver::RealDriver& real, const Block& block, std::uint64_t now_ns,
                 bool meshes) {
  const std::uint64_t last = page_of(block.start + block.taken_bytes - 1);
  const std::uint64_t ahead = meshes ? bytes_ahead(counts_.held_bytes) / page_bytes : 0;
  const std::uint64_t pages = std::min(last + 1 + ahead, bytes_.load() / page_bytes);
  if (pages_.size() < pages) pages_.resize(pages);
  packing_.expect_memory(pages - page_of(block.start));
  // Each stretch of pages without memory becomes a run, and each run may need a row in unused_runs_
  // later.
  const std::uint64_t runs = runs_.size() + (last - page_of(block.start)) + 2;
  if (std::min(runs_.capacity(), unused_runs_.capacity()) < runs) {
    runs_.reserve(2 * runs);
    unused_runs_.reserve(2 * runs);
  }
  for (std::uint64_t page = page_of(block.start); page <= last; ++page) {
    if (pages_[page].run != 0) continue;
    const std::uint64_t needed = meshes ? pages_ahead(page, last + 1 - page) : 1;
    const std::uint64_t wanted = pages_ahead(page, std::max(needed, ahead));
    if (!(wanted > needed && map_run(real, page, wanted, now_ns)) &&
        !map_run(real, page, needed, now_ns))
      return false;
  }
  return true;
}

// Counts the block in each page that it touches.
void Arena::use_pages(const Block& block) noexcept {
  const std::uint64_t last = page_of(block.start + block.taken_bytes - 1);
  ++changes_;
  for (std::uint64_t page = page_of(block.start); page <= last; ++page) {
    Run& run = runs_[pages_[page].run - 1];
    run.filled_at = changes_;
    if (pages_[page].blocks++ != 0) continue;
    count_unused(run, -1);
    ++run.pages_in_use;
    count_unused(run, 1);
  }
}

std::optional<Block> Arena::take(const driver::RealDriver& real, std::uint64_t bytes,
                                 Placement placement, std::uint64_t now_ns, bool meshes) {
  auto block = packing_.take(bytes, placement);
  if (!block && unused_members_ != 0 && placement != Placement::in_memory) {
    unmap_unused_members(real);
    block = packing_.take(bytes, placement);
  }
  if (!block) return std::nullopt;
  const auto drop = [&] {
    packing_.give(block->start);
    const std::uint64_t last = page_of(block->start + block->taken_bytes - 1);
    for (std::uint64_t page = page_of(block->start); page <= last; ++page)
      if (page >= pages_.size() || pages_[page].run == 0)
        packing_.lose_memory(address_of(page), page_bytes);
  };
  try {
    if (back(real, *block, now_ns, meshes)) return block;
  } catch (...) {
    drop();
    throw;
  }
  drop();
  return std::nullopt;
}

std::optional<Block> Arena::allocate(const driver::RealDriver& real, std::uint64_t bytes,
                                     std::uint64_t now_ns, bool meshes) {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended() || is_closing()) return std::nullopt;
  const std::uint64_t used = counts_.held_bytes - counts_.idle_bytes - counts_.partly_idle_bytes;
  const Placement first = placement_of_next_block(used, packing_.taken_bytes());
  auto block = take(real, bytes, first, now_ns, meshes);
  if (!block && first == Placement::within_page)
    block = take(real, bytes, Placement::in_memory, now_ns, meshes);
  if (!block) return std::nullopt;
  use_pages(*block);
  counts_.live_bytes += bytes;
  ++counts_.served_count;
  counts_.served_bytes += bytes;
  return block;
}

std::optional<Block> Arena::retire(std::uint64_t start) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended()) return std::nullopt;
  const auto block = packing_.retire(start);
  if (block) counts_.live_bytes -= block->bytes;
  return block;
}

void Arena::unretire(std::uint64_t start) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended()) return;
  packing_.unretire(start);
  if (const auto block = packing_.block_at(start)) counts_.live_bytes += block->bytes;
}

// In memory that several members share, the host alone takes new blocks. The freed addresses of
// another member become withheld, and the same offsets in the host become a hole.
void Arena::give(const Block& block, std::uint64_t now_ns) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended() || !packing_.has_retired(block) || !packing_.give(block.start)) return;
  const std::uint64_t end = block.start + block.taken_bytes, last = page_of(end - 1);
  for (std::uint64_t page = page_of(block.start); page <= last; ++page) {
    Run& run = runs_[pages_[page].run - 1];
    const std::uint64_t start = address_of(page), first = std::max(block.start, start),
                        bytes = std::min(end, start + page_bytes) - first;
    const bool is_guest = this->is_guest(page);
    if (run.is_lost || is_guest) packing_.withhold(first, bytes);
    if (!run.is_lost && is_guest)
      packing_.release(address_of(run.host + pages_[page].offset) + (first - start), bytes);
    if (--pages_[page].blocks != 0) continue;
    if (is_guest && is_unused(run, member_of(page))) ++unused_members_;
    count_unused(run, -1);
    --run.pages_in_use;
    count_unused(run, 1);
    run.idle_since_ns = now_ns;
  }
}

std::optional<Block> Arena::block_around(std::uint64_t address) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  return held && !has_ended() ? packing_.block_around(address) : std::nullopt;
}

void Arena::set_sync_memops(std::uint64_t start, bool on) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (held && !has_ended()) packing_.set_sync_memops(start, on);
}

std::uint64_t Arena::give_back(const driver::RealDriver& real, std::uint64_t until_ns) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended()) return 0;
  unmap_unused_members(real);
  if (counts_.idle_bytes == 0 && !evicted_.is_on_host) return 0;
  std::uint64_t given = 0;
  for (Run& run : runs_) {
    if (run.count == 0 || run.pages_in_use != 0 || run.idle_since_ns > until_ns) continue;
    const std::uint64_t bytes = is_evicted(run) ? 0 : run.bytes();
    if (unmap_run(real, run)) given += bytes;
  }
  counts_.returned_bytes += given;
  return given;
}

void Arena::end(const driver::RealDriver& real) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  if (!held || has_ended()) return;
  bool all_unmapped = true;
  release_start_memory(real);
  for (Run& run : runs_)
    if (run.count != 0) all_unmapped = unmap_run(real, run) && all_unmapped;
  // Once the range is freed, the driver may hand out its addresses to others, so the arena drops
  // them first.
  const std::uint64_t bytes = bytes_.exchange(0);
  if (all_unmapped) real.cuMemAddressFree(base_.load(), bytes);
  packing_ = {};
  pages_ = {};
  left_over_ = {};
  unused_members_ = 0;
  neighbours_plan_ = {};
  evicted_ = {};
  runs_ = {};
  unused_runs_ = {};
  copy_kernel_ = {};
  counts_.held_bytes = counts_.live_bytes = 0;
  counts_.idle_bytes = counts_.partly_idle_bytes = counts_.evicted_bytes = 0;
}

CUresult Arena::change_access(const driver::RealDriver& real, DeviceOrdinal peer,
                              bool may) noexcept {
  const Locked held(lock_, Locked::ForLong{});
  CUresult result = CUDA_SUCCESS;
  if (!held || has_ended()) return result;
  const auto change = [&](std::uint64_t first, std::uint64_t bytes) {
    const CUresult changed = Peers::change(real, address_of(first), bytes, peer, may);
    if (changed != CUDA_SUCCESS) result = changed;
  };
  for (const Run& run : runs_) {
    if (run.count != 0) each_member(run, [&](std::uint64_t first) { change(first, run.bytes()); });
  }
  return result;
}

void Arena::was_paused(std::uint64_t ns) noexcept {
  if (const Locked held(lock_, Locked::ForLong{}); held) counts_.pause_ns += ns;
}

ArenaCounts Arena::counts() noexcept {
  const Locked held(lock_, Locked::ForLong{});
  return held ? counts_ : ArenaCounts{};
}

}  // namespace cuwarden::pool
