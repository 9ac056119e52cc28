// Moves the pool's blocks into fewer pages, behind the program's addresses: if a request would fail
// otherwise, or if the device is short of memory while pages of the pool lie unused. Memory is
// moved while every device is idle and all submissions are held.
#include <algorithm>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/driver/unknown_calls.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/serving/mesh_pause.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::serving {
namespace {

// Most bytes, beyond those needed, that meshing keeps of the saved memory to begin with next time.
constexpr std::uint64_t kept_for_next = std::uint64_t{16} << 20;
// Most bytes of host memory to which an arena moves blocks in a pause: the size of the largest
// piece that the pool maps ahead. A larger piece, which only a large block gets, is not moved.
constexpr std::uint64_t most_evicted = std::uint64_t{16} << 20;
// Nanoseconds between two looks for unused pages that were mapped in one piece with used ones.
constexpr std::uint64_t looks_each_ns = 1'000'000'000;
// The most memory that the driver keeps free besides a request.
constexpr std::uint64_t driver_share = std::uint64_t{16} << 20;
using ledger::RungOutcome;

// True if another thread ends the process, and the driver has freed all memory. A page that cannot
// be mapped again is then no loss.
bool has_driver_ended(const driver::RealDriver& real) noexcept {
  CUcontext current = nullptr;
  return real.cuCtxGetCurrent != nullptr &&
         real.cuCtxGetCurrent(&current) == CUDA_ERROR_DEINITIALIZED;
}

}  // namespace

bool ServingPools::can_mesh() const noexcept {
  return settings_.longest_mesh_pause_ns() != 0 && parts_.device.any() &&
         driver::submission_gate.is_armed() && driver::can_tell_idle(parts_.real);
}

std::uint64_t ServingPools::unused_bytes(DeviceOrdinal device) noexcept {
  const pool::ArenaCounts counts = parts_.device.counts(device);
  const bool can_move = (counts.partly_idle_bytes != 0 || settings_.mesh.is_visible) &&
                        can_mesh() && !parts_.captures.any() && !mesh_obstacle();
  return counts.idle_bytes +
         (can_move ? std::max(counts.partly_idle_bytes, meshable_bytes(device, counts.live_bytes))
                   : 0);
}

// A plan for all pages takes a while, so that its result is told until twenty times that time have
// passed, or until the program has freed much.
std::uint64_t ServingPools::meshable_bytes(DeviceOrdinal device,
                                           std::uint64_t live_bytes) noexcept {
  constexpr std::uint64_t lasts = 20, much = 16;
  const std::uint64_t before = meshable_beside_bytes_.load(std::memory_order_relaxed);
  if (!settings_.mesh.is_visible) return 0;
  const std::uint64_t begun = clock_.now_ns();
  if (meshable_device_.load(std::memory_order_relaxed) != device.value ||
      begun >= meshable_until_ns_.load(std::memory_order_relaxed) ||
      live_bytes < before - before / much) {
    meshable_bytes_.store(parts_.device.meshable_bytes(parts_.real, device));
    const std::uint64_t now = clock_.now_ns();
    meshable_until_ns_.store(now + lasts * (now - begun), std::memory_order_relaxed);
    meshable_beside_bytes_.store(live_bytes, std::memory_order_relaxed);
    meshable_device_.store(device.value, std::memory_order_relaxed);
  }
  return meshable_bytes_.load(std::memory_order_relaxed);
}

// Returns an obstacle that calls of the program have brought about; null if there is none.
std::optional<Notice> ServingPools::obstacle_met() noexcept {
  if (is_reached_.load(std::memory_order_relaxed)) return Notice::memory_has_handle;
  if (driver::unknown_call.load(std::memory_order_relaxed) != nullptr)
    return Notice::unknown_functions;
  return std::nullopt;
}

// Returns the reason why memory must not be moved: code may access it without a call that passes
// the gate. Other processes, network cards and video engines do so by handles, or by libraries that
// know the addresses. Programs do so by driver functions that cuwarden does not know.
std::optional<Notice> ServingPools::mesh_obstacle() noexcept {
  std::optional<Notice> obstacle = obstacle_met();
  if (!obstacle && process_.reaches_memory()) obstacle = Notice::library_reaches_memory;
  if (!obstacle && process_.may_call_unknown()) obstacle = Notice::unknown_functions;
  if (obstacle) parts_.device.meshes_no_more();
  return obstacle;
}

// A small request fails for lack of a whole page. The driver refuses a request that needs nearly
// all free memory, too.
std::uint64_t ServingPools::lacking_bytes(Wanted wanted) const noexcept {
  const std::uint64_t enough = pool::up_to_page(wanted.bytes) + driver_share;
  const auto reading = driver::read_current_device(parts_.real);
  return reading ? enough - std::min(enough, reading->free_bytes) : 0;
}

// Returns the outcome if memory must not be moved now; null if it may be.
std::optional<RungOutcome> ServingPools::move_obstacle(DeviceOrdinal device) noexcept {
  // Captures must not be disturbed.
  if (parts_.captures.any()) return RungOutcome::unsafe;
  if (clock_.now_ns() < mesh_not_before_ns_.load(std::memory_order_relaxed))
    return RungOutcome::timed_out;
  if (const auto obstacle = mesh_obstacle()) {
    notices_.tell_once(*obstacle, device, parts_.device.counts(device).bytes_without_blocks());
    return RungOutcome::unsafe;
  }
  return std::nullopt;
}

RungOutcome ServingPools::mesh(const tracking::CurrentContext& here, Wanted wanted,
                               std::uint64_t& pause_left_ns) noexcept {
  std::uint64_t needed = lacking_bytes(wanted);
  // Another thread has made room. A guess was too small.
  if (needed == 0) return wanted.is_guess ? RungOutcome::no_memory : RungOutcome::served;
  const std::uint64_t gainable = parts_.device.counts(here.device).bytes_without_blocks();
  if (wanted.is_guess) needed = std::min(needed, gainable);
  // The driver's share may be more than the request needs.
  const std::uint64_t least =
      wanted.is_guess ? 1 : std::max<std::uint64_t>(needed - std::min(needed, driver_share), 1);
  if (needed == 0 || least > gainable) return RungOutcome::nothing_to_do;
  const ErrnoGuard keep;
  const Uncancelled whole;
  auto outcome = move_obstacle(here.device);
  if (!outcome) outcome = move_memory(here, wanted, least, needed, pause_left_ns);
  if (*outcome == RungOutcome::served) return *outcome;
  // The memory that the last moves have left for the next ones may be enough for the request.
  return parts_.device.give_back_start_memory(parts_.real, here.device) != 0 ? RungOutcome::served
                                                                             : *outcome;
}

RungOutcome ServingPools::move_memory(const tracking::CurrentContext& here, Wanted wanted,
                                      std::uint64_t least, std::uint64_t needed,
                                      std::uint64_t& pause_left_ns) noexcept {
  MeshPause pause(*this, here.context, pause_left_ns, mesh_not_before_ns_);
  // Requests like this one are likely to follow. As much again as requests have needed so far is
  // saved for them, as long as that needs no further pause.
  const std::uint64_t ahead = mesh_needed_bytes_.load(std::memory_order_relaxed) + needed;
  const bool any =
      parts_.device.mesh(parts_.real, here.device, pause,
                         {.least_bytes = least,
                          .needed_bytes = needed,
                          .enough_bytes = needed + ahead,
                          .verifies = settings_.mesh.verifies,
                          .copies_need_memory = wanted.has_given_back,
                          .kept_bytes = kept_for_next,
                          .most_host_bytes = std::min(
                              most_evicted, pool::host_memory_for_spilling(process_))}) != 0;
  if (any && !wanted.is_guess) mesh_needed_bytes_.fetch_add(needed, std::memory_order_relaxed);
  parts_.device.was_paused(here.device, pause.vain_ns());
  if (any || pause.vain_ns() != 0) note_pool(here.device);
  tell_of_moves(here.device);
  return any ? RungOutcome::served : pause.outcome();
}

void ServingPools::tell_of_moves(DeviceOrdinal device) noexcept {
  const pool::ArenaCounts counts = parts_.device.counts(device);
  if (counts.lost_bytes != 0 && !has_driver_ended(parts_.real))
    notices_.tell_once(Notice::lost, device, counts.lost_bytes);
  if (counts.differing_bytes != 0)
    notices_.tell_once(Notice::contents_differ, device, counts.differing_bytes);
  if (counts.unshared_bytes != 0)
    notices_.tell_once(Notice::memory_not_shared, device, counts.unshared_bytes);
}

// While the device has more free memory than lies unused in pieces, no process lacks the unused
// memory, and the program is not paused. Nothing is moved, either, while memory of contexts is lent
// to the program, because the driver may then have no memory for copies.
void ServingPools::release_unused_of_pieces_now(std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t longest_pause_ns = 20'000'000, rest_times = 100;
  constexpr std::uint64_t small = std::uint64_t{64} << 20, small_share = 50;
  const tracking::CurrentContext here = parts_.queries.current_unguarded();
  const pool::ArenaCounts counts = parts_.device.counts(here.device);
  const std::uint64_t unused = counts.partly_idle_bytes;
  if ((unused <= small && counts.evicted_bytes == 0) || !can_mesh()) return;
  const auto reading = driver::read_current_device(parts_.real);
  if (!reading || parts_.captures.any() || mesh_obstacle() ||
      parts_.ledger.devices.lent_context_bytes(here.device) != 0)
    return;
  const std::uint64_t free = reading->free_bytes + counts.idle_bytes;
  const bool is_short =
      unused > std::max(small, reading->total_bytes / small_share) && unused > free;
  const bool brings_back =
      counts.evicted_bytes != 0 && reading->free_bytes > small + counts.evicted_bytes;
  if (!is_short && !brings_back) return;
  const std::uint64_t begun = clock_.now_ns();
  std::uint64_t left_ns = std::min(longest_pause_ns, settings_.longest_mesh_pause_ns());
  // A wait in vain here must not keep a refused request from pausing the program.
  std::atomic<std::uint64_t> no_matter{0};
  MeshPause pause(*this, here.context, left_ns, no_matter);
  if (is_short)
    parts_.device.mesh(parts_.real, here.device, pause,
                       {.least_bytes = small,
                        .needed_bytes = unused,
                        .enough_bytes = unused,
                        .verifies = settings_.mesh.verifies,
                        .prepares_memory = false});
  else
    parts_.device.bring_back_evicted(parts_.real, here.device, pause, settings_.mesh.verifies);
  parts_.device.was_paused(here.device, pause.vain_ns());
  note_pool(here.device);
  tell_of_moves(here.device);
  release_not_before_ns_.store(
      now_ns + std::max(looks_each_ns, rest_times * (clock_.now_ns() - begun)),
      std::memory_order_relaxed);
}

// This runs after each free, and usually only compares the time.
void ServingPools::release_unused_of_pieces() noexcept {
  const std::uint64_t now = parts_.ledger.time.recently_ns();
  std::uint64_t not_before = release_not_before_ns_.load(std::memory_order_relaxed);
  if (now < not_before || is_ending_.load(std::memory_order_relaxed) || is_confined() ||
      !release_not_before_ns_.compare_exchange_strong(not_before, now + looks_each_ns,
                                                      std::memory_order_relaxed))
    return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  release_unused_of_pieces_now(now);
}

}  // namespace cuwarden::serving
