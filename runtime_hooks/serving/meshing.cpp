// Moves the pool's blocks into fewer pages, behind the program's addresses. Memory is moved only if
// a request would fail otherwise, while every device is idle and all submissions are held.
#include <algorithm>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/core/vain_waits.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"
#include "runtime_hooks/driver/unknown_calls.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::serving {
namespace {

// Bytes that meshing keeps of what it saves, so that it has something to begin with the next time.
constexpr std::uint64_t kept_for_next = std::uint64_t{8} << 20;
// The most memory that the driver keeps free besides a request.
constexpr std::uint64_t driver_share = std::uint64_t{16} << 20;
using ledger::RungOutcome;

// Longest time of a pause in which memory is moved, once the devices are idle; and the time in
// which the program gets on with its work before the next pause.
constexpr std::uint64_t longest_move_ns = 50'000'000, between_pauses_ns = 20'000'000;
constexpr std::uint64_t poll_ns = 20'000;

}  // namespace

// Asks all contexts, since peers may work on the device's memory from theirs. The gate must be
// closed: no capture begins then, and no context ends.
bool ServingPools::all_are_idle(ContextId current) noexcept {
  bool has_current = false;
  const bool all = parts_.contexts.all_of([&](ContextId context) {
    has_current = has_current || context == parts_.contexts.owner(current);
    const driver::Inside inside(parts_.real, context, current);
    return inside && driver::is_idle(parts_.real, context);
  });
  return all && has_current;
}

bool ServingPools::can_mesh() const noexcept {
  return settings_.mesh_pause_ns != 0 && parts_.device.any() &&
         driver::submission_gate.is_armed() && driver::can_tell_idle(parts_.real);
}

std::uint64_t ServingPools::unused_bytes(DeviceOrdinal device) noexcept {
  const pool::ArenaCounts counts = parts_.device.counts(device);
  const bool can_move = (counts.partly_idle_bytes != 0 || settings_.shows_meshable) && can_mesh() &&
                        !parts_.captures.any() && !mesh_obstacle();
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
  if (!settings_.shows_meshable) return 0;
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
  if (const auto met = obstacle_met()) return met;
  if (process_.reaches_memory()) return Notice::library_reaches_memory;
  if (process_.may_call_unknown()) return Notice::unknown_functions;
  return std::nullopt;
}

RungOutcome ServingPools::mesh(const tracking::CurrentContext& here, Wanted wanted,
                               std::uint64_t& pause_left_ns) noexcept {
  const auto lacking = [&]() -> std::uint64_t {
    // A small request fails for lack of a whole page. The driver refuses a request that needs
    // nearly all free memory, too.
    const std::uint64_t enough = pool::up_to_page(wanted.bytes) + driver_share;
    const auto reading = driver::read_current_device(parts_.real);
    return reading ? enough - std::min(enough, reading->free_bytes) : 0;
  };
  const auto may_be_gained = [&] {
    const pool::ArenaCounts counts = parts_.device.counts(here.device);
    return counts.held_bytes - std::min(counts.held_bytes, counts.live_bytes);
  };
  std::uint64_t needed = lacking();
  // Another thread has made room. A guess was too small.
  if (needed == 0) return wanted.is_guess ? RungOutcome::no_memory : RungOutcome::served;
  if (wanted.is_guess) needed = std::min(needed, may_be_gained());
  // The driver's share may be more than the request needs.
  const std::uint64_t least =
      wanted.is_guess ? 1 : std::max<std::uint64_t>(needed - std::min(needed, driver_share), 1);
  if (needed == 0 || least > may_be_gained()) return RungOutcome::nothing_to_do;
  // The memory that the last moves have left for the next ones may be enough for the request.
  const auto without_moves = [&](RungOutcome outcome) {
    return parts_.device.give_back_start_memory(parts_.real, here.device) != 0 ? RungOutcome::served
                                                                               : outcome;
  };
  // Captures must not be disturbed.
  if (parts_.captures.any()) return without_moves(RungOutcome::unsafe);
  if (clock_.now_ns() < mesh_not_before_ns_.load(std::memory_order_relaxed))
    return without_moves(RungOutcome::timed_out);
  const ErrnoGuard keep;
  const Uncancelled whole;
  if (const auto obstacle = mesh_obstacle()) {
    notices_.tell_once(*obstacle, here.device, may_be_gained());
    return without_moves(RungOutcome::unsafe);
  }
  std::uint64_t begun_ns = 0, deadline_ns = 0, vain_ns = 0;
  const auto paused_for = [&](std::uint64_t ns) {
    pause_left_ns -= std::min(pause_left_ns, ns);
    return ns;
  };
  RungOutcome without = RungOutcome::nothing_to_do;
  const auto begin = [&] {
    without = RungOutcome::timed_out;
    if (pause_left_ns == 0) return false;
    if (begun_ns != 0) clock_.sleep_ns(between_pauses_ns);
    begun_ns = clock_.now_ns();
    deadline_ns = begun_ns + pause_left_ns;
    // Libraries are searched before the gate closes, because a thread that loads a library may
    // wait at the gate.
    if (mesh_obstacle()) return without = RungOutcome::unsafe, false;
    if (driver::submission_gate.close(deadline_ns, clock_)) {
      for (;; clock_.sleep_ns(poll_ns)) {
        if (parts_.captures.any() || obstacle_met()) {
          without = RungOutcome::unsafe;
          break;
        }
        if (all_are_idle(here.context)) {
          deadline_ns = std::min(deadline_ns, clock_.now_ns() + longest_move_ns);
          without = RungOutcome::nothing_to_do;
          return true;
        }
        if (clock_.now_ns() >= deadline_ns) break;
      }
      driver::submission_gate.open();
    }
    const std::uint64_t now = clock_.now_ns(), waited = paused_for(now - begun_ns);
    vain_ns += waited;
    mesh_not_before_ns_.store(now + vain_times * waited, std::memory_order_relaxed);
    return false;
  };
  const auto is_over = [&] { return clock_.now_ns() >= deadline_ns; };
  const auto end = [&] {
    driver::submission_gate.open();
    return paused_for(clock_.now_ns() - begun_ns);
  };
  // Requests like this one are likely to follow. As much again as requests have needed so far is
  // saved for them, as long as that needs no further pause.
  const std::uint64_t ahead = mesh_needed_bytes_.load(std::memory_order_relaxed) + needed;
  const bool any = parts_.device.mesh(parts_.real, here.device, {begin, is_over, end},
                                      {least, needed, needed + ahead, settings_.verifies_meshing,
                                       wanted.has_given_back, kept_for_next}) != 0;
  if (any && !wanted.is_guess) mesh_needed_bytes_.fetch_add(needed, std::memory_order_relaxed);
  parts_.device.was_paused(here.device, vain_ns);
  if (any || vain_ns != 0) note_pool(here.device);
  const pool::ArenaCounts counts = parts_.device.counts(here.device);
  if (counts.lost_bytes != 0) notices_.tell_once(Notice::lost, here.device, counts.lost_bytes);
  if (counts.differing_bytes != 0)
    notices_.tell_once(Notice::contents_differ, here.device, counts.differing_bytes);
  return any ? RungOutcome::served : without_moves(without);
}

}  // namespace cuwarden::serving
