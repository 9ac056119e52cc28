#include "runtime_hooks/pool/pinned_pool.hpp"

#include <algorithm>

#include "runtime_hooks/pool/packing/pages.hpp"

namespace cuwarden::pool {
namespace {

// Bytes of an ordinary piece. Locking takes time for each page as well: a larger piece would cost
// programs that ask for no more, and a smaller one would make the next request pay again.
constexpr std::uint64_t ordinary_piece_bytes = 2 * page_bytes;

CUresult lock_pages(const driver::RealDriver& real, void** made, std::uint64_t bytes,
                    unsigned flags) noexcept {
  if (flags != PinnedPool::as_alloc_host) return real.cuMemHostAlloc(made, bytes, flags);
  return real.cuMemAllocHost_v2 == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                           : real.cuMemAllocHost_v2(made, bytes);
}

}  // namespace

PinnedPool::Heap& PinnedPool::heap_of(ContextId context, unsigned flags) {
  for (const auto& heap : heaps_)
    if (heap->context == context && heap->flags == flags && !heap->is_closing) return *heap;
  heaps_.push_back(std::make_unique<Heap>());
  heaps_.back()->context = context;
  heaps_.back()->flags = flags;
  return *heaps_.back();
}

PinnedPool::Pieces::iterator PinnedPool::piece_around(std::uint64_t address) noexcept {
  const auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return pieces_.end();
  const auto found = std::prev(after);
  return address - found->first < found->second.bytes && !found->second.heap->is_closing
             ? found
             : pieces_.end();
}

// Adds memory that the driver allocated. Pieces that overlap it are dropped: their context has
// ended and the driver has freed them.
void PinnedPool::add_piece(Heap& heap, std::uint64_t start, std::uint64_t bytes) {
  for (auto at = pieces_.lower_bound(start); at != pieces_.end() && at->first < start + bytes;) {
    if (at->second.blocks == 0) idle_bytes_ -= at->second.bytes;
    at = pieces_.erase(at);
  }
  heap.packing.add_region(start, bytes);
  try {
    pieces_.emplace(start, Piece{.bytes = bytes, .heap = &heap});
  } catch (...) {
    heap.packing.remove_region(start);
    throw;
  }
  idle_bytes_ += bytes;
}

std::optional<Block> PinnedPool::take(Heap& heap, std::uint64_t bytes, std::uint64_t now_ns) {
  const auto block = heap.packing.take(bytes, Placement::in_memory);
  if (!block) return std::nullopt;
  const auto piece = piece_around(block->start);
  if (piece == pieces_.end()) return std::nullopt;
  if (piece->second.blocks++ == 0) idle_bytes_ -= piece->second.bytes;
  piece->second.idle_since_ns = now_ns;
  served_.fetch_add(1, std::memory_order_relaxed);
  served_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return block;
}

std::uint64_t PinnedPool::allocate(const driver::RealDriver& real, ContextId context,
                                   unsigned flags, std::uint64_t bytes, std::uint64_t now_ns) {
  if (bytes == 0 || bytes > largest_bytes || real.cuMemHostAlloc == nullptr ||
      real.cuMemFreeHost == nullptr)
    return 0;
  {
    const Locked locked(lock_);
    if (!locked) return 0;
    if (const auto block = take(heap_of(context, flags), bytes, now_ns)) return block->start;
  }
  // A request above half a piece gets a piece of its own size, so that no memory is locked that was
  // not asked for.
  const std::uint64_t own = up_to_page(bytes);
  const std::uint64_t piece = bytes * 2 > ordinary_piece_bytes ? own : ordinary_piece_bytes;
  void* made = nullptr;
  if (lock_pages(real, &made, piece, flags) != CUDA_SUCCESS || made == nullptr) return 0;
  bool added = false;
  try {
    const Locked locked(lock_);
    if (locked) {
      Heap& heap = heap_of(context, flags);
      add_piece(heap, reinterpret_cast<std::uint64_t>(made), piece);
      added = true;
      has_any_.store(true, std::memory_order_release);
      const auto block = take(heap, bytes, now_ns);
      return block ? block->start : 0;
    }
  } catch (...) {
    if (!added) real.cuMemFreeHost(made);
    throw;
  }
  real.cuMemFreeHost(made);
  return 0;
}

bool PinnedPool::has(std::uint64_t address) noexcept {
  if (!any()) return false;
  const Locked locked(lock_);
  return !locked || piece_around(address) != pieces_.end();
}

std::optional<PinnedPool::PinnedBlock> PinnedPool::around(std::uint64_t address) noexcept {
  if (!any()) return std::nullopt;
  const Locked locked(lock_);
  if (!locked) return std::nullopt;
  const auto piece = piece_around(address);
  if (piece == pieces_.end()) return std::nullopt;
  const auto block = piece->second.heap->packing.block_around(address);
  return block ? std::optional(PinnedBlock{*block, piece->second.heap->context}) : std::nullopt;
}

bool PinnedPool::is_hole(std::uint64_t address) noexcept {
  if (!any()) return false;
  const Locked locked(lock_);
  if (!locked) return false;
  const auto piece = piece_around(address);
  return piece != pieces_.end() && !piece->second.heap->packing.block_around(address);
}

std::optional<PinnedPool::PinnedBlock> PinnedPool::retire(std::uint64_t start) noexcept {
  const Locked locked(lock_);
  if (!locked) return std::nullopt;
  const auto piece = piece_around(start);
  if (piece == pieces_.end()) return std::nullopt;
  const auto block = piece->second.heap->packing.retire(start);
  return block ? std::optional(PinnedBlock{*block, piece->second.heap->context}) : std::nullopt;
}

void PinnedPool::unretire(std::uint64_t start) noexcept {
  const Locked locked(lock_);
  if (!locked) return;
  if (const auto piece = piece_around(start); piece != pieces_.end())
    piece->second.heap->packing.unretire(start);
}

void PinnedPool::give(std::uint64_t start, std::uint64_t now_ns) noexcept {
  const Locked locked(lock_);
  if (!locked) return;
  const auto piece = piece_around(start);
  if (piece == pieces_.end() || !piece->second.heap->packing.give(start)) return;
  if (--piece->second.blocks == 0) idle_bytes_ += piece->second.bytes;
  piece->second.idle_since_ns = now_ns;
}

// Frees one piece after the other, because the lock is not held during the driver's function.
std::uint64_t PinnedPool::give_back(const driver::RealDriver& real, std::uint64_t until_ns,
                                    std::uint64_t kept_bytes) noexcept {
  std::uint64_t given = 0;
  while (any()) {
    Pieces::node_type out;
    {
      const Locked locked(lock_);
      if (!locked || idle_bytes_ <= kept_bytes) return given;
      const auto found = std::ranges::find_if(pieces_, [&](const auto& at) {
        return at.second.blocks == 0 && at.second.idle_since_ns <= until_ns &&
               !at.second.heap->is_closing;
      });
      if (found == pieces_.end() || !found->second.heap->packing.remove_region(found->first))
        return given;
      idle_bytes_ -= found->second.bytes;
      out = pieces_.extract(found);
    }
    // If the driver refuses, the memory stays unused until the context ends.
    if (real.cuMemFreeHost(reinterpret_cast<void*>(out.key())) != CUDA_SUCCESS) return given;
    given += out.mapped().bytes;
  }
  return given;
}

void PinnedPool::give_back_some(const driver::RealDriver& real, std::uint64_t now_ns,
                                std::uint64_t idle_limit_ns) noexcept {
  constexpr std::uint64_t interval_ns = 250'000'000;
  bool too_much = false;
  {
    const Locked locked(lock_);
    too_much = locked && idle_bytes_ > most_idle_bytes;
  }
  if (too_much) give_back(real, UINT64_MAX, most_idle_bytes);
  std::uint64_t next = next_look_ns_.load(std::memory_order_relaxed);
  if (now_ns < next || now_ns <= idle_limit_ns ||
      !next_look_ns_.compare_exchange_strong(next, now_ns + interval_ns))
    return;
  give_back(real, now_ns - idle_limit_ns, 0);
}

void PinnedPool::set_ending(ContextId context, bool is_ending) noexcept {
  if (!any()) return;
  const Locked locked(lock_);
  if (!locked) return;
  for (const auto& heap : heaps_)
    if (heap->context == context) heap->is_closing = is_ending;
}

// Drops the context's heap, with the blocks that the program did not free.
void PinnedPool::context_ended(ContextId context) noexcept {
  if (!any()) return;
  while (deferred_.take(context)) {
  }
  const Locked locked(lock_);
  if (!locked) return;
  const auto is_gone = [&](const Heap& heap) { return heap.is_closing && heap.context == context; };
  for (const auto& [start, piece] : pieces_)
    if (is_gone(*piece.heap) && piece.blocks == 0) idle_bytes_ -= piece.bytes;
  std::erase_if(pieces_, [&](const auto& at) { return is_gone(*at.second.heap); });
  std::erase_if(heaps_, [&](const auto& heap) { return is_gone(*heap); });
}

std::uint64_t PinnedPool::held_bytes() noexcept {
  const Locked locked(lock_);
  std::uint64_t sum = 0;
  if (locked)
    for (const auto& [start, piece] : pieces_) sum += piece.bytes;
  return sum;
}

}  // namespace cuwarden::pool
