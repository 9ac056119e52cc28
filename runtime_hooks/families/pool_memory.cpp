#include "runtime_hooks/families/pool_memory.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/families/bodies.hpp"

namespace cuwarden::families {
namespace {

bool is_for_capture(CUresult result) {
  return result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
         result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

template <class Work>
CUresult in_context(const driver::RealDriver& real, ContextId context, Work work) noexcept {
  CUcontext current = nullptr;
  if (real.cuCtxGetCurrent == nullptr || real.cuCtxGetCurrent(&current) != CUDA_SUCCESS)
    current = nullptr;
  const driver::Inside inside(real, context, ContextId{reinterpret_cast<std::uint64_t>(current)});
  return inside ? work() : inside.result();
}

// All that was submitted to the context that owns the range; cuMemUnmap waits for nothing
// (measured). Any other error than that of a capture is the device's, and the program's to hear.
CUresult wait_for_device(const driver::RealDriver& real, ContextId context) noexcept {
  if (real.cuCtxSynchronize == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return in_context(real, context, [&] { return real.cuCtxSynchronize(); });
}

// The driver does not take it of mapped memory (measured), but of a context, for all that is done
// in it. That stays: others may have asked for it.
CUresult set_sync_memops(const driver::RealDriver& real, ContextId context) noexcept {
#if CUDA_VERSION >= 12010
  if (real.cuCtxGetFlags == nullptr || real.cuCtxSetFlags == nullptr)
    return CUDA_ERROR_NOT_SUPPORTED;
  return in_context(real, context, [&] {
    unsigned flags = 0;
    const CUresult got = real.cuCtxGetFlags(&flags);
    return got == CUDA_SUCCESS ? real.cuCtxSetFlags(flags | CU_CTX_SYNC_MEMOPS) : got;
  });
#else
  static_cast<void>(real), static_cast<void>(context);
  return CUDA_ERROR_NOT_SUPPORTED;
#endif
}

}  // namespace

std::optional<PoolMemory> pool_memory_around(Recorder& recorder, std::uint64_t address) noexcept {
  if (const auto placed = recorder.pool().around(address)) {
    const pool::Block& block = placed->block;
    const std::uint64_t first = pool::down_to_page(block.start);
    return PoolMemory{.start = block.start,
                      .bytes = block.bytes,
                      .mapped_start = first,
                      .mapped_bytes = pool::up_to_page(block.start + block.taken_bytes) - first,
                      .serial = block.serial,
                      .sync_memops = block.sync_memops,
                      .device = placed->arena->device(),
                      .context = placed->arena->context()};
  }
  if (const auto placed = recorder.pinned_pool().around(address))
    return PoolMemory{.start = placed->block.start,
                      .bytes = placed->block.bytes,
                      .serial = placed->block.serial,
                      .is_pinned = true,
                      .context = placed->context};
  const auto range = recorder.spill().ranges().around(address);
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

bool is_of_pool(CUdeviceptr address) noexcept {
  Recorder* const keeper = pool_keeper.load(std::memory_order_acquire);
  return keeper != nullptr &&
         (keeper->pool().owner(address) != nullptr || keeper->spill().ranges().starts_at(address));
}

bool is_in_pool(CUdeviceptr address) noexcept {
  Recorder* const keeper = pool_keeper.load(std::memory_order_acquire);
  return keeper != nullptr && pool_memory_around(*keeper, address).has_value();
}

bool is_of_pinned_pool(const void* address) noexcept {
  Recorder* const keeper = pool_keeper.load(std::memory_order_acquire);
  return keeper != nullptr && keeper->pinned_pool().has(reinterpret_cast<std::uint64_t>(address));
}

namespace {

// At the end of the process the driver has freed all there was. Else memory is freed from wherever
// the thread is, in another context or in none (measured).
CUresult driver_answers(const driver::RealDriver& real) {
  CUcontext current = nullptr;
  return real.cuCtxGetCurrent == nullptr ? CUDA_SUCCESS : real.cuCtxGetCurrent(&current);
}

bool is_gone(CUresult result) {
  return result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED;
}

// What was taken out is given once the device does not use it any more; `defer` keeps it for then,
// and `undo` is for a device that fails.
template <class Give, class Defer, class Undo>
CUresult free_when_unused(Recorder& recorder, const driver::RealDriver& real, ContextId context,
                          Give give, Defer defer, Undo undo) noexcept {
  const bool captured = recorder.captures().any();
  const CUresult waited = captured ? CUDA_SUCCESS : wait_for_device(real, context);
  if (captured || is_for_capture(waited)) {
    defer();
    return CUDA_SUCCESS;
  }
  if (is_gone(waited))
    give();
  else
    undo();
  return waited;
}

CUresult free_block(Recorder& recorder, const driver::RealDriver& real, pool::Arena& arena,
                    std::uint64_t address) noexcept {
  const auto block = arena.retire(address);
  if (!block) return CUDA_ERROR_INVALID_VALUE;
  return free_when_unused(
      recorder, real, arena.context(), [&] { arena.give(*block, recorder.ledger().recently_ns()); },
      [&] {
        recorder.pool().deferred().put({*block, &arena});
      },
      [&] { arena.unretire(address); });
}

CUresult free_range(Recorder& recorder, const driver::RealDriver& real, std::uint64_t address,
                    ContextId used_in) noexcept {
  pool::Spill& spill = recorder.spill();
  auto range = spill.ranges().take(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;  // another thread was first
  const CUresult result = free_when_unused(
      recorder, real, range->context, [&] { spill.give_back(real, *range); },
      [&] {
        if (used_in != range->context) range->used_in = used_in;
        spill.defer(*range);
      },
      [&] { spill.put_back(real, *range); });
  if (is_gone(result))
    recorder.ledger().unspilled(range->device, range->kind, ByteCount{range->host_bytes});
  return result;
}

}  // namespace

CUresult free_of_pool(const driver::RealDriver& real, CUdeviceptr address,
                      ContextId used_in) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  Recorder& recorder = *pool_keeper.load(std::memory_order_acquire);
  if (const CUresult result = driver_answers(real); result != CUDA_SUCCESS) return result;
  pool::Arena* const arena = recorder.pool().owner(address);
  const CUresult result = arena != nullptr ? free_block(recorder, real, *arena, address)
                                           : free_range(recorder, real, address, used_in);
  if (is_gone(result)) recorder.free_deferred();
  return result;
}

CUresult free_of_pinned_pool(const driver::RealDriver& real, void* pointer) noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  Recorder& recorder = *pool_keeper.load(std::memory_order_acquire);
  pool::PinnedPool& all = recorder.pinned_pool();
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (const CUresult result = driver_answers(real); result != CUDA_SUCCESS) return result;
  const auto placed = all.retire(address);
  if (!placed) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = free_when_unused(
      recorder, real, placed->context, [&] { all.give(address, recorder.ledger().recently_ns()); },
      [&] { all.deferred().put(*placed); }, [&] { all.unretire(address); });
  if (is_gone(result)) {
    recorder.free_deferred();
    recorder.unlock_idle();
  }
  return result;
}

bool change_access_of_pools(Recorder& recorder, DeviceOrdinal device, DeviceOrdinal peer,
                            bool may) noexcept {
  const driver::RealDriver& real = recorder.real();
  const CUresult arenas = recorder.pool().change_access(real, device, peer, may),
                 ranges = recorder.spill().change_access(real, device, peer, may);
  return arenas == CUDA_SUCCESS && ranges == CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(HookedCall& call, const void* value, CUpointer_attribute attribute,
                               CUdeviceptr ptr) {
  const auto set = [&](CUdeviceptr at) {
    return call.real().cuPointerSetAttribute(value, attribute, at);
  };
  Recorder* const keeper = pool_keeper.load(std::memory_order_acquire);
  if (keeper == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value == nullptr)
    return set(ptr);
  const ErrnoGuard keep;
  const auto memory = pool_memory_around(*keeper, ptr);
  if (!memory || memory->is_pinned) return set(ptr);
  const bool on = *static_cast<const unsigned*>(value) != 0;
  const CUresult result = on ? set_sync_memops(call.real(), memory->context) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return result;
  if (pool::Arena* const arena = keeper->pool().owner(memory->start))
    arena->set_sync_memops(memory->start, on);
  else
    keeper->spill().ranges().set_sync_memops(memory->start, on);
  return result;
}

// Seen at a moment when nobody submits, and no capture begins.
bool Recorder::is_idle_here() noexcept {
  constexpr std::uint64_t patience_ns = 1'000'000;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const driver::GateClosed closed(patience_ns);
  return closed && !captures_.any() && driver::is_idle(real_, place_unguarded().context);
}

void Recorder::free_deferred_now() noexcept {
  const ErrnoGuard keep;
  const Uncancelled whole;
  const ContextId here = contexts_.owner(place_unguarded().context);
  while (const auto placed = pool_.deferred().take(here)) {
    if (wait_for_device(real_, here) != CUDA_SUCCESS) return pool_.deferred().put(*placed);
    placed->arena->give(placed->block, ledger_.recently_ns());
  }
  while (const auto placed = pinned_.deferred().take(here)) {
    if (wait_for_device(real_, here) != CUDA_SUCCESS) return pinned_.deferred().put(*placed);
    pinned_.give(placed->block.start, ledger_.recently_ns());
  }
  while (auto range = spill_.take_deferred(here)) {
    if (wait_for_device(real_, here) != CUDA_SUCCESS) return spill_.defer(*range);
    if (range->used_in.value == 0) {
      spill_.give_back(real_, *range);
      continue;
    }
    range->used_in = {};
    spill_.defer(*range);
  }
}

}  // namespace cuwarden::families
