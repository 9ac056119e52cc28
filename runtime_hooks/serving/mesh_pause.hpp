// Pauses of the program in which the pool's memory is moved.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/format/incident_layout.hpp"
#include "runtime_hooks/pool/arena.hpp"
#include "runtime_hooks/serving/serving_pools.hpp"

namespace cuwarden::serving {

// The pauses for one refused request, or for one call of release_unused_of_pieces(). In a pause the
// submission gate is closed, so that no call gives work to a device, and all devices are idle.
class ServingPools::MeshPause final : public pool::Pause {
 public:
  // `current`: the calling thread's context. `left_ns`: nanoseconds for which the object may still
  // pause the program; each pause is subtracted. `not_before_ns`: set after a wait in vain to the
  // time on the pools' clock before which the program should not be paused again. `pools`,
  // `left_ns` and `not_before_ns` outlive the object.
  MeshPause(ServingPools& pools, ContextId current, std::uint64_t& left_ns,
            std::atomic<std::uint64_t>& not_before_ns) noexcept
      : pools_(pools), current_(current), left_ns_(left_ns), not_before_ns_(not_before_ns) {}

  // Closes the gate and waits until all devices are idle. Between two pauses, first lets the
  // program get on with its work for 20 ms. Returns false, with the gate open, if no time is left,
  // or if memory must not be moved; outcome() then says so. After a wait in vain, sets
  // `not_before_ns` to the end of the wait plus ten times its length (vain_times).
  bool begin() noexcept override;
  // Returns true once the pause has lasted 50 ms since the devices were idle, or if `left_ns` is
  // used up.
  bool is_over() noexcept override;
  // Opens the gate. Returns the nanoseconds since begin() was called, without the time in which the
  // program got on with its work.
  std::uint64_t end() noexcept override;
  // Returns the time on the pools' clock, in nanoseconds.
  std::uint64_t now_ns() noexcept override;

  // Returns the outcome of the rung if nothing was saved. nothing_to_do: begin() was not called, or
  // the last pause has begun. timed_out: the program could not be paused. unsafe: memory must not
  // be moved.
  ledger::RungOutcome outcome() const noexcept { return outcome_; }
  // Returns the nanoseconds for which begin() has waited in vain: for the gate to close, or for the
  // devices to become idle.
  std::uint64_t vain_ns() const noexcept { return vain_ns_; }

 private:
  // Waits until all devices are idle; the gate must be closed. Returns false, and sets `outcome_`,
  // if the time is over, or if memory must not be moved.
  bool wait_for_devices() noexcept;
  // Returns true if no context of the process has unfinished work. False if that cannot be found
  // out, or if LiveContexts lacks the current context. The gate must be closed.
  bool all_are_idle() noexcept;
  // Subtracts the time since `begun_ns_` from the time that is left, and returns it in nanoseconds.
  std::uint64_t subtract() noexcept;

  ServingPools& pools_;
  const ContextId current_;
  std::uint64_t& left_ns_;
  std::atomic<std::uint64_t>& not_before_ns_;
  // Times on the pools' clock, in nanoseconds: of the last call of begin(), 0 before the first one;
  // and the time at which the pause is over.
  std::uint64_t begun_ns_ = 0, deadline_ns_ = 0;
  std::uint64_t vain_ns_ = 0;
  ledger::RungOutcome outcome_ = ledger::RungOutcome::nothing_to_do;
};

}  // namespace cuwarden::serving
