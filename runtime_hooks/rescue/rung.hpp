// A rung: one of the ordered attempts to serve a refused request. A rescue: one refused request
// while rungs try to serve it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/core/vain_waits.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/rescue/parts.hpp"
#include "runtime_hooks/rescue/pending_frees.hpp"
#include "runtime_hooks/rescue/reclaimers.hpp"
#include "runtime_hooks/rescue/request.hpp"
#include "runtime_hooks/rescue/tried_rungs.hpp"

namespace cuwarden::rescue {

// The settings of class Ladder, which tries the rungs.
struct Settings {
  bool enabled = false;  // true if rungs are tried for refused requests at all
  // Longest time to wait for the device to reach pending frees, and for all reclaimers together. 0:
  // the device is not waited for, and no reclaimer is called.
  std::uint64_t sync_timeout_ns = 2'000'000'000;
  std::uint64_t wait_ns = 0;  // time for which a request waits for other processes; 0: no waiting
  bool spills = false;        // true if host memory may stand behind device addresses
  bool meshes = false;  // true if the program may be paused to move the pool's memory together
  Reclaimers* reclaimers = nullptr;  // callbacks that empty caches; null: none can be registered
};

// Facts about a refused request and its device. They tell if rungs are worth trying, although an
// earlier rescue has tried them in vain.
struct Situation {
  std::uint32_t device = 0;      // the device's ordinal + 1; 0: host memory
  std::uint64_t live_bytes = 0;  // live bytes of this process on the device (or the host)
  std::uint32_t noted = 0;       // PendingFrees::noted()
  std::uint64_t bytes = 0;       // size of the request
  // True if rungs with a cost to the program may be tried: meshing, reclaimers, waiting, spilling.
  // False if the request comes from an allocator that, when refused, empties its own cache and asks
  // again.
  bool is_last_resort_due = true;
  bool can_spill = false;   // true if host memory can serve the request
  bool fits_device = true;  // false if the request is larger than the whole device
};

// The last rescue on one device that found nothing, and waits on the device that were in vain. All
// times are of the ladder's clock.
struct VainAttempts {
  // Time of the rescue, the process's live bytes on the device then, and the size of the request. A
  // time of 0: there was no such rescue.
  std::atomic<std::uint64_t> time_ns{0}, live_bytes{0}, bytes{0};
  std::atomic<std::uint32_t> noted{0};  // PendingFrees::noted() then
  // True if the rescue has tried all rungs that are turned on, and if it has tried to spill.
  std::atomic<bool> tried_all{false}, tried_spill{false};
  std::atomic<std::uint32_t> reclaimers{0};  // Reclaimers::changes() then
  // Times at which the last wait for other processes, and the last wait for pending frees, ended
  // without memory. 0: there was none, or a later one was not in vain.
  std::atomic<std::uint64_t> waited_ns{0}, synchronised_ns{0};
};

// Outcome of a rescue.
struct Rescued {
  bool served = false;  // true if the request was served
  // Address of the memory, if cuwarden served it (by spilling). 0: the driver has served the
  // request and written the address itself, or the request was not served.
  std::uint64_t address = 0;
};

// A refused request, and the objects that serve it. Lives on the stack of the requesting thread.
struct RefusedCall {
  const Parts& parts;
  PendingFrees& pending;
  const tracking::Caller& caller;         // the code that made the request
  const tracking::Allocation& asked_for;  // the request as its hook understands it
  tracking::CurrentContext here;          // the requesting thread's context and device
  const Request& request;                 // size, device, function and kind of the request
  FunctionRef<CUresult()> ask_driver;     // repeats the program's call of the driver; any number
};

// The state of one rescue: a refused request while rungs are tried for it.
struct Rescue {
  const RefusedCall& call;
  const Situation& situation;
  const Settings& settings;
  VainAttempts& before;
  Clock& clock;
  TriedRungs& tried;

  // True if a request on this device waited for other processes' memory in vain shortly before this
  // rescue began.
  bool has_waited_in_vain = was_in_vain(before.waited_ns, settings.wait_ns);
  // True if the pool has unused memory that it could not give back because a stream is captured.
  bool pool_must_wait = false;
  // The reclaimer (a callback that empties a cache) that the reclaim rung calls in this turn.
  Reclaimers::Entry reclaimer{};
  // Time until which all reclaimers together are waited for; 0: the rung has called none yet.
  std::uint64_t reclaim_deadline_ns = 0;
  std::uint32_t gave_nothing = 0;  // a bit, by index, for each reclaimer that gave nothing back
  std::optional<StackId> stack{};  // the requesting thread's whole call stack; null: not walked yet
  std::optional<serving::ReclaimerFailure> failure{};  // failure of `reclaimer`; null: none
  bool has_spilled = false;                            // true if the spill rung has run
  std::uint64_t served_at = 0;  // address of spilled memory that serves the request; 0: none

  // Asks the driver for the memory once more. `served`: the driver has granted the request.
  // `unsafe`: it was not asked, because that might end a stream capture.
  RungOutcome ask() const {
    // While a stream is captured, asking the driver might end the capture.
    if (call.parts.captures.any()) return RungOutcome::unsafe;
    switch (call.ask_driver()) {
      case CUDA_SUCCESS:
        return RungOutcome::served;
      case CUDA_ERROR_OUT_OF_MEMORY:
        return RungOutcome::no_memory;
      default:
        return RungOutcome::other_error;
    }
  }
  bool is_on_device() const { return call.request.device != no_device; }
  // Returns true if a wait ended in vain at `until_ns` less than ten times its length `waited_ns`
  // ago. It is not repeated then, since nothing is likely to have changed. An end of 0 means none.
  bool was_in_vain(const std::atomic<std::uint64_t>& until_ns, std::uint64_t waited_ns) const {
    const std::uint64_t until = until_ns.load(std::memory_order_relaxed);
    return until != 0 && (clock.now_ns() - until) / vain_times < waited_ns;
  }
};

// An attempt to serve a refused request. The ladder calls `applies` and `run` once for each turn,
// from turn 0 to `turns` - 1, until the request is served. An error other than a lack of memory
// ends the rescue: the program gets its first error, and meets the other one in its next call.
struct Rung {
  ledger::Rung name;
  bool (*applies)(Rescue&, std::size_t turn);  // returns false if the turn is to be left out
  // Makes the attempt, and asks the driver again if it may have made room. Returns `served` if the
  // request was granted.
  RungOutcome (*run)(Rescue&, std::size_t turn);
  std::size_t turns = 1;               // most calls of `run` for one request
  void (*in_vain)(Rescue&) = nullptr;  // called if turns ran and none has served it; may be null
  // Called after the outcome of a turn was reported (TriedRungs::add()); may be null.
  void (*told)(Rescue&, std::size_t turn) = nullptr;
};

// Waits until the device has reached stream-ordered frees that are not synchronised yet, makes
// their memory available, and asks the driver again. Gives up at `deadline_ns` of the rescue's
// clock (timed_out). `nothing_to_do`: there were no such frees. Used by several rungs.
RungOutcome settle_pending_frees(Rescue&, std::uint64_t deadline_ns);

}  // namespace cuwarden::rescue
