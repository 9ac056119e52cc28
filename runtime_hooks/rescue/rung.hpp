// A rung: one of the ordered attempts to serve a refused request. A rescue: one refused request
// while rungs try to serve it.
#pragma once

#include <atomic>
#include <cstdint>
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

struct Rung;

// Outcomes of one rescue's attempts so far, which tell if rungs are worth trying again soon.
struct Tally {
  RungOutcome last{};  // the last outcome
  // The last outcome, and true if any attempt has timed out or was unsafe. Attempts by rungs whose
  // obstacles may last (Rung::obstacles_last) do not count for these three.
  RungOutcome last_that_counts{};
  bool timed_out = false, unsafe = false;

  // True once the rescue is over: the request was served, or has failed with another error.
  bool has_ended() const noexcept {
    return last == RungOutcome::served || last == RungOutcome::other_error;
  }
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
  bool earlier_wait_was_vain = was_in_vain(before.waited_ns, settings.wait_ns);
  // True if the pool has unused memory that it could not give back because a stream is captured.
  bool pool_must_wait = false;
  bool has_spilled = false;     // true if the spill rung has run
  std::uint64_t served_at = 0;  // address of spilled memory that serves the request; 0: none
  Tally tally{};

  // Makes an attempt of the rung by calling `run`. Adds the attempt to `tried`, before it begins
  // and when it has ended, and its outcome to `tally`. `reclaimer`: name of the reclaimer that is
  // called; empty for other attempts.
  void attempt(const Rung&, FunctionRef<RungOutcome()> run, std::string_view reclaimer = {});
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

// An attempt to serve a refused request, or several of a kind. An error other than a lack of memory
// ends the rescue: the program gets its first error, and meets the other one in its next call.
struct Rung {
  ledger::Rung name;
  bool (*applies)(Rescue&);  // returns false if the rung is to be left out
  // Makes the attempt, and asks the driver again if it may have made room. Returns `served` if the
  // request was granted. Null for a rung with `run_each`.
  RungOutcome (*run)(Rescue&) = nullptr;
  // Makes several attempts by Rescue::attempt(), until the rescue has ended. Null for a rung with
  // `run`.
  void (*run_each)(Rescue&) = nullptr;
  // True if an obstacle to the rung may last for ever. The rung's failure is then no reason to try
  // rungs again soon.
  bool obstacles_last = false;
};

// Waits until the device has reached stream-ordered frees that are not synchronised yet, makes
// their memory available, and asks the driver again. Gives up at `deadline_ns` of the rescue's
// clock (timed_out). `nothing_to_do`: there were no such frees. Used by several rungs.
RungOutcome settle_pending_frees(Rescue&, std::uint64_t deadline_ns);

}  // namespace cuwarden::rescue
