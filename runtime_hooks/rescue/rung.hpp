// A rung of the ladder, and a rescue: one refused request while rungs try to serve it.
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

// The settings of the ladder.
struct Settings {
  bool enabled = false;
  std::uint64_t sync_timeout_ns = 2'000'000'000;  // 0: work is not waited for
  std::uint64_t wait_ns = 0;                      // 0: requests do not wait for memory
  bool spills = false;
  bool meshes = false;               // true where the pool may pause the program for a request
  Reclaimers* reclaimers = nullptr;  // the process's; null: none
};

// Facts that tell whether a ladder that found nothing would find something now.
struct Situation {
  std::uint32_t device = 0;      // ordinal + 1; 0: the host
  std::uint64_t live_bytes = 0;  // of this process there
  std::uint32_t noted = 0;       // PendingFrees::noted()
  std::uint64_t bytes = 0;       // asked for
  // True where other libraries may be made to give memory up, the request may wait, and host memory
  // may be taken. False for an allocator that empties its own cache first and asks again.
  bool is_last_resort_due = true;
  bool can_spill = false;
  bool fits_device = true;  // true where the empty device could serve the request
};

// Earlier attempts on one device that found nothing. 0 in a time: there was none.
struct VainAttempts {
  std::atomic<std::uint64_t> time_ns{0}, live_bytes{0}, bytes{0};
  std::atomic<std::uint32_t> noted{0};
  std::atomic<bool> tried_all{false}, tried_spill{false};
  std::atomic<std::uint32_t> reclaimers{0};  // Reclaimers::changes()
  // Ends of a wait, and of a synchronisation, that were in vain.
  std::atomic<std::uint64_t> waited_ns{0}, synchronised_ns{0};
};

// Outcome of a rescue.
struct Rescued {
  bool served = false;
  std::uint64_t address = 0;  // of memory that is not the driver's; 0: the driver's, or none
};

// A refused request. Lives on the stack of the thread that asks.
struct RefusedCall {
  const Parts& parts;
  PendingFrees& pending;
  const tracking::Caller& caller;
  const tracking::Allocation& asked_for;
  tracking::CurrentContext here;
  const Request& request;
  FunctionRef<CUresult()> ask_driver;  // asks the driver once more, as the program did
};

// One refused request while the ladder is climbed for it.
struct Rescue {
  const RefusedCall& call;
  const Situation& situation;
  const Settings& settings;
  VainAttempts& before;
  Clock& clock;
  TriedRungs& tried;

  // True if a request waited for memory in vain shortly before this rescue.
  bool has_waited_in_vain = was_in_vain(before.waited_ns, settings.wait_ns);
  bool pool_must_wait = false;  // the pool was not allowed to give back what it keeps
  // For the reclaim rung: the reclaimer whose turn it is, the end of the time for all reclaimers, a
  // bit for each reclaimer that had nothing to give, and the thread's whole stack, once captured.
  Reclaimers::Entry reclaimer{};
  std::uint64_t reclaim_deadline_ns = 0;  // 0: none was called yet
  std::uint32_t gave_nothing = 0;
  std::optional<StackId> stack{};
  std::optional<serving::ReclaimerFailure> failure{};  // of that reclaimer, in its turn
  bool has_spilled = false;                            // the spill rung has run
  std::uint64_t served_at = 0;                         // Rescued::address

  // Asks the driver once more.
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
  // Returns true for a vain end of waiting so recent that nothing is likely to have changed.
  bool was_in_vain(const std::atomic<std::uint64_t>& until_ns, std::uint64_t waited_ns) const {
    const std::uint64_t until = until_ns.load(std::memory_order_relaxed);
    return until != 0 && (clock.now_ns() - until) / vain_times < waited_ns;
  }
};

// An attempt to serve a refused request. Rungs that change something ask the driver again; `served`
// says that the request was granted. Any error but a lack of memory ends the rescue: the program
// gets the first error, and meets the other one in its next call.
struct Rung {
  ledger::Rung name;
  bool (*applies)(Rescue&, std::size_t turn);
  RungOutcome (*run)(Rescue&, std::size_t turn);
  std::size_t turns = 1;               // runs of the rung for one request, where applies() holds
  void (*in_vain)(Rescue&) = nullptr;  // called once no turn served the request; may be null
  void (*told)(Rescue&, std::size_t turn) = nullptr;  // called after a turn's report; may be null
};

// Waits until the device has come to frees that pend, at most until `deadline_ns` of the rescue's
// clock, and asks again. Used by several rungs.
RungOutcome settle_pending_frees(Rescue&, std::uint64_t deadline_ns);

}  // namespace cuwarden::rescue
