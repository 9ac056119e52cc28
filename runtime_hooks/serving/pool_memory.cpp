#include "runtime_hooks/serving/pool_memory.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::serving {

// Gives the functions of this file what they need of a ServingPools: the pools, and what is due
// after a free.
struct PoolMemoryAccess {
  static Pools& parts(ServingPools& pools) noexcept { return pools.parts_; }
  static void free_deferred(ServingPools& pools) noexcept { pools.free_deferred(); }
  static void unlock_idle(ServingPools& pools) noexcept { pools.unlock_idle(); }
  static void release_unused_of_pieces(ServingPools& pools) noexcept {
    pools.release_unused_of_pieces();
  }
};

namespace {

// Returns the pools that have served memory to the program; null if there are none.
Pools* pools_in_use() noexcept {
  ServingPools* const pools = serving_pools.load(std::memory_order_acquire);
  return pools == nullptr ? nullptr : &PoolMemoryAccess::parts(*pools);
}

bool is_for_capture(CUresult result) {
  return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

}  // namespace

std::optional<PoolMemory> pool_memory_around(ServingPools& serving,
                                             std::uint64_t address) noexcept {
  Pools& pools = PoolMemoryAccess::parts(serving);
  if (const auto found = pools.device.around(address)) {
    const pool::Block& block = found->block;
    const std::uint64_t first = pool::down_to_page(block.start);
    return PoolMemory{.start = block.start,
                      .bytes = block.bytes,
                      .mapped_start = first,
                      .mapped_bytes = pool::up_to_page(block.start + block.taken_bytes) - first,
                      .serial = block.serial,
                      .sync_memops = block.sync_memops,
                      .device = found->arena->device(),
                      .context = found->arena->context()};
  }
  if (const auto found = pools.pinned.around(address))
    return PoolMemory{.start = found->block.start,
                      .bytes = found->block.bytes,
                      .serial = found->block.serial,
                      .is_pinned = true,
                      .context = found->context};
  const auto range = pools.spill.ranges().around(address);
  if (!range) return std::nullopt;
  return PoolMemory{.start = range->start,
                    .bytes = range->bytes,
                    .mapped_start = range->start,
                    .mapped_bytes = range->mapped_bytes,
                    .sync_memops = range->sync_memops,
                    .device = range->device,
                    .context = range->context,
                    .kind = range->kind,
                    .memory_pool = range->memory_pool};
}

bool is_unused_in_pool(ServingPools& serving, std::uint64_t address) noexcept {
  Pools& pools = PoolMemoryAccess::parts(serving);
  return pools.device.owner(address) != nullptr || pools.pinned.is_hole(address);
}

void note_sync_memops(ServingPools& serving, std::uint64_t start, bool on) noexcept {
  Pools& pools = PoolMemoryAccess::parts(serving);
  if (pool::Arena* const arena = pools.device.owner(start))
    arena->set_sync_memops(start, on);
  else
    pools.spill.ranges().set_sync_memops(start, on);
}

bool is_of_pool(CUdeviceptr address) noexcept {
  Pools* const pools = pools_in_use();
  return pools != nullptr &&
         (pools->device.owner(address) != nullptr || pools->spill.ranges().starts_at(address));
}

bool is_in_pool(CUdeviceptr address) noexcept {
  ServingPools* const pools = serving_pools.load(std::memory_order_acquire);
  return pools != nullptr && pool_memory_around(*pools, address).has_value();
}

bool is_of_pinned_pool(const void* address) noexcept {
  Pools* const pools = pools_in_use();
  return pools != nullptr && pools->pinned.has(reinterpret_cast<std::uint64_t>(address));
}

namespace {

// Returns an error if the process is ending and the driver has freed all memory. Before that,
// memory can be freed in any current context, or in none (measured).
CUresult driver_answers(const driver::RealDriver& real) {
  CUcontext current = nullptr;
  return real.cuCtxGetCurrent == nullptr ? CUDA_SUCCESS : real.cuCtxGetCurrent(&current);
}

bool is_gone(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
}

// Calls one of three functions: `give` once the device no longer uses the memory; `defer` if a
// capture makes it impossible to wait; `undo` if the device fails.
template <class Give, class Defer, class Undo>
CUresult free_when_unused(Pools& pools, const driver::RealDriver& real, ContextId context,
                          Give give, Defer defer, Undo undo) noexcept {
  tracking::Captures& captures = pools.captures;
  const bool captured = !captures.begin_wait();
  const CUresult waited = captured ? driver::wait_beside_captures(real, context)
                                   : driver::wait_for_context(real, context);
  if (!captured) captures.end_wait();
  if (is_for_capture(waited) ||
      (captured && (waited == CUDA_ERROR_OUT_OF_MEMORY || waited == CUDA_ERROR_NOT_SUPPORTED))) {
    defer();
    return CUDA_SUCCESS;
  }
  if (is_gone(waited))
    give();
  else
    undo();
  return waited;
}

CUresult free_block(Pools& pools, const driver::RealDriver& real, pool::Arena& arena,
                    std::uint64_t address) noexcept {
  const auto block = arena.retire(address);
  if (!block) return CUDA_ERROR_INVALID_VALUE;
  return free_when_unused(
      pools, real, arena.context(), [&] { arena.give(*block, pools.ledger.time.recently_ns()); },
      [&] {
        pools.device.deferred().put({*block, &arena});
      },
      [&] { arena.unretire(address); });
}

CUresult free_range(Pools& pools, const driver::RealDriver& real, std::uint64_t address,
                    ContextId used_in) noexcept {
  pool::Spill& spill = pools.spill;
  auto range = spill.ranges().take(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;  // another thread has freed the range
  const CUresult result = free_when_unused(
      pools, real, range->context, [&] { spill.give_back(real, *range); },
      [&] {
        if (used_in != range->context) range->used_in = used_in;
        spill.defer(*range);
      },
      [&] { spill.put_back(real, *range); });
  if (is_gone(result))
    pools.ledger.devices.unspilled(range->device, range->kind, ByteCount{range->host_bytes});
  return result;
}

}  // namespace

CUresult free_of_pool(const driver::RealDriver& real, CUdeviceptr address,
                      ContextId used_in) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  ServingPools& serving = *serving_pools.load(std::memory_order_acquire);
  Pools& pools = PoolMemoryAccess::parts(serving);
  if (const CUresult result = driver_answers(real); result != CUDA_SUCCESS) return result;
  pool::Arena* const arena = pools.device.owner(address);
  const CUresult result = arena != nullptr ? free_block(pools, real, *arena, address)
                                           : free_range(pools, real, address, used_in);
  if (is_gone(result)) PoolMemoryAccess::free_deferred(serving);
  return result;
}

void memory_of_pool_was_freed() noexcept {
  PoolMemoryAccess::release_unused_of_pieces(*serving_pools.load(std::memory_order_acquire));
}

CUresult free_of_pinned_pool(const driver::RealDriver& real, void* pointer) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  ServingPools& serving = *serving_pools.load(std::memory_order_acquire);
  Pools& pools = PoolMemoryAccess::parts(serving);
  pool::PinnedPool& all = pools.pinned;
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (const CUresult result = driver_answers(real); result != CUDA_SUCCESS) return result;
  const auto found = all.retire(address);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = free_when_unused(
      pools, real, found->context, [&] { all.give(address, pools.ledger.time.recently_ns()); },
      [&] { all.deferred().put(*found); }, [&] { all.unretire(address); });
  if (is_gone(result)) {
    PoolMemoryAccess::free_deferred(serving);
    PoolMemoryAccess::unlock_idle(serving);
  }
  return result;
}

// The gate is closed meanwhile, so no thread submits work, and no capture begins.
bool ServingPools::is_idle_here() noexcept {
  constexpr std::uint64_t patience_ns = 1'000'000;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const driver::GateClosed closed(patience_ns, clock_);
  return closed && !parts_.captures.any() &&
         driver::is_idle(parts_.real, parts_.queries.current_unguarded().context);
}

void ServingPools::free_deferred_now() noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  const ContextId here = parts_.contexts.owner(parts_.queries.current_unguarded().context);
  // A capture may have begun since the caller has looked for one.
  const auto wait = [&] {
    if (!parts_.captures.begin_wait()) return false;
    const CUresult result = driver::wait_for_context(parts_.real, here);
    parts_.captures.end_wait();
    return result == CUDA_SUCCESS;
  };
  while (const auto found = parts_.device.deferred().take(here)) {
    if (!wait()) return parts_.device.deferred().put(*found);
    found->arena->give(found->block, parts_.ledger.time.recently_ns());
  }
  while (const auto found = parts_.pinned.deferred().take(here)) {
    if (!wait()) return parts_.pinned.deferred().put(*found);
    parts_.pinned.give(found->block.start, parts_.ledger.time.recently_ns());
  }
  while (auto range = parts_.spill.take_deferred(here)) {
    if (!wait()) return parts_.spill.defer(*range);
    if (range->used_in.value == 0) {
      parts_.spill.give_back(parts_.real, *range);
      continue;
    }
    range->used_in = {};
    parts_.spill.defer(*range);
  }
}

}  // namespace cuwarden::serving
