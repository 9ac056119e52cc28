#include "runtime_hooks/pool/device_pool.hpp"

#include <algorithm>
#include <memory>

#include "runtime_hooks/driver/device_reading.hpp"

namespace cuwarden::pool {
namespace {

// Code takes up to one page. A device that is almost full is left as it is: the arena may have been
// opened for a request that was refused.
bool has_room_for_code(const driver::RealDriver& real) {
  constexpr std::uint64_t least_free_bytes = std::uint64_t{256} << 20;
  const auto reading = driver::read_current_device(real);
  return reading && reading->free_bytes >= least_free_bytes;
}

}  // namespace

DevicePool::~DevicePool() {
  for (std::atomic<Arena*>& arena : arenas_) delete arena.load();
}

Arena* DevicePool::owner(std::uint64_t address) noexcept {
  return find([&](const Arena& arena) { return arena.has(address); });
}

Arena* DevicePool::find_or_make(const driver::RealDriver& real, DeviceOrdinal device,
                                ContextId context) {
  if (Arena* const found = arena_of(context)) return found;
  if (without_[context.value / 64 % without_.size()].load(std::memory_order_relaxed) ==
      context.value)
    return nullptr;
  bool is_new = false;
  Arena* const opened = open_arena(real, device, context, is_new);
  if (is_new && by_kernel_ && meshes_ && has_room_for_code(real)) opened->load_copy_kernel(real);
  return opened;
}

// A new context may have the handle of one that has ended. The lock is held during the reservation,
// so that two threads do not open two arenas for one context.
Arena* DevicePool::open_arena(const driver::RealDriver& real, DeviceOrdinal device,
                              ContextId context, bool& is_new) {
  const Locked locked(lock_);
  if (!locked) return nullptr;
  if (Arena* const found = arena_of(context)) return found;
  // An ended arena keeps its counts, which belong to its device.
  Arena* const ended =
      find([&](const Arena& arena) { return !arena.is_open() && arena.device() == device; });
  const std::uint32_t at = count_.load(std::memory_order_relaxed);
  std::unique_ptr<Arena> made;
  if (ended == nullptr && at < most_arenas) made = std::make_unique<Arena>(peers_);
  Arena* const opened = ended != nullptr ? ended : made.get();
  if (opened == nullptr || !opened->open(real, device, context)) {
    without_[context.value / 64 % without_.size()].store(context.value, std::memory_order_relaxed);
    return nullptr;
  }
  if (made != nullptr) {
    arenas_[at].store(made.release(), std::memory_order_release);
    count_.store(at + 1, std::memory_order_release);
  }
  is_new = true;
  return opened;
}

std::uint64_t DevicePool::allocate(const driver::RealDriver& real, DeviceOrdinal device,
                                   ContextId context, std::uint64_t bytes, std::uint64_t now_ns) {
  Arena* const arena = find_or_make(real, device, context);
  if (arena == nullptr) return 0;
  const bool meshes = meshes_.load(std::memory_order_relaxed);
  auto block = arena->allocate(real, bytes, now_ns, meshes);
  // Idle memory of other contexts' arenas may be what this arena lacks.
  if (!block && give_back(real, device, UINT64_MAX) != 0)
    block = arena->allocate(real, bytes, now_ns, meshes);
  return block ? block->start : 0;
}

std::optional<ArenaBlock> DevicePool::around(std::uint64_t address) noexcept {
  Arena* const arena = owner(address);
  const auto block = arena == nullptr ? std::nullopt : arena->block_around(address);
  return block ? std::optional(ArenaBlock{*block, arena}) : std::nullopt;
}

std::uint64_t DevicePool::give_back(const driver::RealDriver& real, DeviceOrdinal device,
                                    std::uint64_t until_ns) noexcept {
  std::uint64_t given = 0;
  each([&](Arena& arena) {
    if (device == no_device || arena.device() == device) given += arena.give_back(real, until_ns);
  });
  return given;
}

std::uint64_t DevicePool::give_back_start_memory(const driver::RealDriver& real,
                                                 DeviceOrdinal device) noexcept {
  std::uint64_t given = 0;
  each([&](Arena& arena) {
    if (arena.device() == device) given += arena.give_back_start_memory(real);
  });
  return given;
}

std::uint64_t DevicePool::mesh(const driver::RealDriver& real, DeviceOrdinal device, Pause& pause,
                               const MeshGoal& goal) noexcept {
  const auto savable = [](Arena& arena) { return arena.counts().bytes_without_blocks(); };
  std::uint64_t elsewhere = 0, gained = 0;
  bool differs = false;  // true if an address of the device has shown wrong contents
  each([&](Arena& arena) {
    if (arena.device() != device) return;
    elsewhere += savable(arena);
    differs |= arena.counts().differing_bytes != 0;
  });
  each([&](Arena& arena) {
    if (arena.device() != device || gained >= goal.needed_bytes || differs) return;
    elsewhere -= std::min(elsewhere, savable(arena));
    const std::uint64_t least = goal.least_bytes - std::min(goal.least_bytes, gained + elsewhere);
    try {
      MeshGoal rest = goal;
      rest.least_bytes = least;
      rest.needed_bytes -= gained;
      rest.enough_bytes -= gained;
      gained += arena.mesh(real, pause, rest);
    } catch (...) {
      // If host memory for a plan is lacking, this arena is not meshed.
    }
    differs = arena.counts().differing_bytes != 0;
  });
  return gained;
}

void DevicePool::bring_back_evicted(const driver::RealDriver& real, DeviceOrdinal device,
                                    Pause& pause, bool verifies) noexcept {
  each([&](Arena& arena) {
    if (arena.device() == device) arena.bring_back_evicted(real, pause, verifies);
  });
}

void DevicePool::set_ending(ContextId context, bool is_ending) noexcept {
  each([&](Arena& arena) {
    if (arena.is_open() && arena.context() == context) arena.set_closing(is_ending);
  });
}

void DevicePool::context_ended(const driver::RealDriver& real, ContextId context) noexcept {
  while (deferred_.take(context)) {
  }
  for (std::atomic<std::uint64_t>& without : without_) {
    std::uint64_t expected = context.value;
    without.compare_exchange_strong(expected, 0);
  }
  // An arena that is not closing belongs to a new context with the same handle.
  each([&](Arena& arena) {
    if (arena.context() == context && arena.is_closing()) arena.end(real);
  });
}

CUresult DevicePool::change_access(const driver::RealDriver& real, DeviceOrdinal device,
                                   DeviceOrdinal peer, bool may) noexcept {
  CUresult result = CUDA_SUCCESS;
  each([&](Arena& arena) {
    if (arena.device() != device) return;
    const CUresult changed = arena.change_access(real, peer, may);
    if (changed != CUDA_SUCCESS) result = changed;
  });
  return result;
}

std::uint64_t DevicePool::meshable_bytes(const driver::RealDriver& real,
                                         DeviceOrdinal device) noexcept {
  std::uint64_t sum = 0;
  each([&](Arena& arena) {
    if (arena.device() == device) sum += arena.meshable_bytes(real);
  });
  return sum;
}

ArenaCounts DevicePool::counts(DeviceOrdinal device) noexcept {
  ArenaCounts sum;
  each([&](Arena& arena) {
    if (arena.device() != device) return;
    const ArenaCounts one = arena.counts();
    sum.held_bytes += one.held_bytes;
    sum.live_bytes += one.live_bytes;
    sum.idle_bytes += one.idle_bytes;
    sum.partly_idle_bytes += one.partly_idle_bytes;
    sum.evicted_bytes += one.evicted_bytes;
    sum.served_count += one.served_count;
    sum.served_bytes += one.served_bytes;
    sum.returned_bytes += one.returned_bytes;
    sum.meshed_pages += one.meshed_pages;
    sum.meshed_bytes += one.meshed_bytes;
    sum.pause_ns += one.pause_ns;
    sum.pauses += one.pauses;
    sum.plan_ns += one.plan_ns;
    sum.prepare_ns += one.prepare_ns;
    sum.release_ns += one.release_ns;
    sum.planned_pages += one.planned_pages;
    sum.lost_bytes += one.lost_bytes;
    sum.differing_bytes += one.differing_bytes;
    sum.unshared_bytes += one.unshared_bytes;
  });
  return sum;
}

}  // namespace cuwarden::pool
