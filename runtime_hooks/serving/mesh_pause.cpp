#include "runtime_hooks/serving/mesh_pause.hpp"

#include <algorithm>

#include "runtime_hooks/core/vain_waits.hpp"
#include "runtime_hooks/driver/context_idle.hpp"
#include "runtime_hooks/driver/inside_context.hpp"
#include "runtime_hooks/driver/submission_gate.hpp"

namespace cuwarden::serving {
namespace {

// Longest time of a pause in which memory is moved, once the devices are idle; and the time in
// which the program gets on with its work before the next pause.
constexpr std::uint64_t longest_move_ns = 50'000'000, between_pauses_ns = 20'000'000;
constexpr std::uint64_t poll_ns = 20'000;

}  // namespace

// Libraries are searched before the gate closes, because a thread that loads a library may wait at
// the gate.
bool ServingPools::MeshPause::begin() noexcept {
  Clock& clock = pools_.clock_;
  outcome_ = ledger::RungOutcome::timed_out;
  if (left_ns_ == 0) return false;
  if (begun_ns_ != 0) clock.sleep_ns(between_pauses_ns);
  begun_ns_ = clock.now_ns();
  deadline_ns_ = begun_ns_ + left_ns_;
  if (pools_.mesh_obstacle()) {
    outcome_ = ledger::RungOutcome::unsafe;
    return false;
  }
  if (driver::submission_gate.close(deadline_ns_, clock)) {
    if (wait_for_devices()) {
      deadline_ns_ = std::min(deadline_ns_, clock.now_ns() + longest_move_ns);
      outcome_ = ledger::RungOutcome::nothing_to_do;
      return true;
    }
    driver::submission_gate.open();
  }
  const std::uint64_t waited = subtract();
  vain_ns_ += waited;
  not_before_ns_.store(begun_ns_ + waited + vain_times * waited, std::memory_order_relaxed);
  return false;
}

bool ServingPools::MeshPause::wait_for_devices() noexcept {
  Clock& clock = pools_.clock_;
  for (;; clock.sleep_ns(poll_ns)) {
    if (pools_.parts_.captures.any() || pools_.obstacle_met()) {
      outcome_ = ledger::RungOutcome::unsafe;
      return false;
    }
    if (all_are_idle()) return true;
    if (clock.now_ns() >= deadline_ns_) return false;
  }
}

// Asks all contexts, since peers may work on the device's memory from theirs. The gate is closed:
// no capture begins, and no context ends.
bool ServingPools::MeshPause::all_are_idle() noexcept {
  const Pools& parts = pools_.parts_;
  bool has_current = false;
  const bool all = parts.contexts.all_of([&](ContextId context) {
    has_current = has_current || context == parts.contexts.owner(current_);
    const driver::Inside inside(parts.real, context, current_);
    return inside && driver::is_idle(parts.real, context);
  });
  return all && has_current;
}

bool ServingPools::MeshPause::is_over() noexcept { return pools_.clock_.now_ns() >= deadline_ns_; }

std::uint64_t ServingPools::MeshPause::end() noexcept {
  driver::submission_gate.open();
  return subtract();
}

std::uint64_t ServingPools::MeshPause::now_ns() noexcept { return pools_.clock_.now_ns(); }

std::uint64_t ServingPools::MeshPause::subtract() noexcept {
  const std::uint64_t ns = pools_.clock_.now_ns() - begun_ns_;
  left_ns_ -= std::min(left_ns_, ns);
  return ns;
}

}  // namespace cuwarden::serving
