// The ladder of one process: tries the rungs, in their order, for refused requests. Remembers
// rescues that found no memory, so that they are not repeated at once.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/rescue/rungs/rung.hpp"

namespace cuwarden::rescue {

// Tries rungs for refused requests. All threads may call the functions at any time.
class Ladder {
 public:
  // `settings`: the user's choices, such as rungs that may be tried, and for how long. `clock`:
  // measures the times of all rungs. `reclaimers`: the registered functions of the program that
  // empty caches; null: none can be registered. All of them outlive the object.
  Ladder(const Settings& settings, Clock& clock, Reclaimers* reclaimers = nullptr) noexcept
      : settings_(settings), clock_(clock), reclaimers_(reclaimers) {}

  // Returns true if the settings allow rungs to be tried for refused requests.
  bool enabled() const noexcept { return settings_.rescues(); }
  // Returns true if there is a rung that costs the program something and may be tried. Such rungs
  // are meshing, waiting and spilling, if they are turned on, and reclaimers (functions that empty
  // caches), if one is registered and may be called. They run only if
  // RescueConditions::is_last_resort_due is true.
  bool has_last_resorts() const noexcept {
    return settings_.wait_ns != 0 || settings_.spills() || settings_.longest_mesh_pause_ns() != 0 ||
           has_reclaimers();
  }

  // Returns true if rungs should be tried for the refused request under these conditions. Returns
  // false if a rescue has found no memory a moment ago, and another one would find none either
  // (EarlierFailures::allow_another()). Only rescues of requests for the same thing
  // (Request::asked) on the same device count.
  bool is_worth_climbing(const Request&, const RescueConditions&) noexcept;
  // Tries the rungs for the refused request until one has served it, or until the driver fails with
  // an error other than a lack of memory (OUT_OF_MEMORY, or RefusedCall::refusal). In a thread that
  // a seccomp filter of the program confines, tries the retry rung only. `RefusedCall`: the
  // request. `RescueConditions`: the facts by which rungs are chosen. `TriedRungs`: gets each rung
  // before it runs, and the rung's outcome afterwards. If no memory was found, remembers that for
  // is_worth_climbing(). It does not if captures made a rung leave something out, or if a rung
  // timed out and a later one did not. The result tells if the request was served, and at which
  // address.
  Rescued climb(const RefusedCall&, const RescueConditions&, TriedRungs&);

 private:
  // Returns the number of reclaimers (functions that empty caches) that were ever registered; 0 if
  // none can be registered.
  std::uint32_t reclaimers() const noexcept {
    return reclaimers_ == nullptr ? 0 : reclaimers_->changes();
  }
  // Returns true if a reclaimer (a function that empties a cache) is registered and the settings
  // allow time to call it.
  bool has_reclaimers() const noexcept {
    return reclaimers_ != nullptr && settings_.sync_timeout_ns != 0 && reclaimers_->any();
  }

  // Number of entries in each row of `earlier_`. Devices whose ordinals differ by a multiple of 64
  // share an entry. Host memory shares an entry with the device of ordinal 63.
  static constexpr std::uint32_t devices = 64;
  // Returns the earlier failures to serve requests for the same thing on the same device.
  EarlierFailures& earlier(const Request& request) noexcept {
    const auto device = static_cast<std::uint32_t>(request.device.value + 1);
    return earlier_[static_cast<std::size_t>(request.asked)][device % devices];
  }
  const Settings& settings_;  // the user's choices
  Clock& clock_;              // measures waits and attempts
  // The registered functions of the program that empty caches; null: none can be registered.
  Reclaimers* const reclaimers_;
  // Earlier failures of rescues and of waits: a row for each thing that a call may ask for
  // (Request::asked). The index in a row is the device's ordinal plus 1, modulo `devices`; 0: host
  // memory.
  EarlierFailures earlier_[ledger::asked_count][devices];
};

}  // namespace cuwarden::rescue
