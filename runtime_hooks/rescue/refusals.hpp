// Requests that the driver refused for lack of memory. Each is counted with an incident of the
// ledger. If rescues are on, rungs try to serve it.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/rescue/incident.hpp"
#include "runtime_hooks/rescue/ladder.hpp"
#include "runtime_hooks/rescue/rungs/parts.hpp"
#include "runtime_hooks/rescue/rungs/request.hpp"
#include "runtime_hooks/tracking/allocation_recorder.hpp"

namespace cuwarden::rescue {

// Handles the refused requests of one process. All threads may call the functions at any time, each
// for its own calls.
class Refusals {
 public:
  // `parts` is copied. All objects that `parts` refers to, and the other arguments, outlive the
  // object. `settings`: the user's choices. `reclaimers`: the registered functions of the program
  // that empty caches; null: none can be registered. `clock`: measures the rungs, and the 10 s for
  // which an equal request counts as the program's next attempt.
  Refusals(const Parts& parts, tracking::AllocationRecorder& recorder, const Settings& settings,
           Reclaimers* reclaimers, IncidentProbes& probes, Clock& clock) noexcept
      : parts_(parts),
        recorder_(recorder),
        clock_(clock),
        ladder_(settings, clock, reclaimers),
        pending_(parts.captures),
        probes_(probes) {}

  // Returns true if rescues are on: rungs are tried for refused requests.
  bool rescues() const noexcept { return ladder_.enabled(); }
  // Returns the reason why no rung is tried for a refused request of the calling thread: rescues
  // are off, or the thread runs a reclaimer (a function of the program that empties a cache).
  // LeftOut::none if rungs are tried.
  LeftOut obstacle() const noexcept;
  // Returns the list of streams in which memory was freed (cuMemFreeAsync) and that were not
  // synchronised since.
  PendingFrees& pending() noexcept { return pending_; }

  // Tries to serve a request for memory that the driver has refused for lack of memory. Counts the
  // refusal first. To be called only if obstacle() returns LeftOut::none. `Caller`: the program's
  // call. `asked_for`: the request, without an address. `request`: repeats the program's call of
  // the driver; rungs call it any number of times. `Accepts`: sources of memory by which the
  // request can be served. If no rung has served it, the result says so, and the program must get
  // the driver's first error. The thread cannot be cancelled during the call. Leaves errno as it
  // was.
  Rescued rescue(const tracking::Caller&, const tracking::Allocation& asked_for,
                 FunctionRef<CUresult()> request, Accepts);
  // Counts a refusal if `result`, the result of a call other than an allocation, says that the
  // driver lacked memory for the call's own work. Any error counts if Need::bytes is not 0. Then
  // tries rungs. `call` repeats the program's call of the driver; rungs call it any number of
  // times, since a refused call leaves nothing behind. Only counts the refusal if rescues are off,
  // if a reclaimer (a function that empties a cache) makes the call, or if the compute mode forbids
  // the context that the call asked for. Returns CUDA_SUCCESS if a repetition has succeeded, and
  // `result` otherwise. Must be called after each failed call that `Need` can describe. The thread
  // cannot be cancelled during the call.
  CUresult rescue(const tracking::Caller&, CUresult result, const Need&,
                  FunctionRef<CUresult()> call);
  // Counts a request that the driver has refused for lack of memory and that cuwarden does not try
  // to serve. If the settings allow cuwarden's pool, the pool's unused memory is then given back to
  // the device, since the program may repeat the request.
  void refused(const tracking::Caller&, const tracking::Allocation& asked_for) noexcept;
  // To be called after the driver or cuwarden's pool has served a request that the driver did not
  // refuse. If the thread's last refused request equals this one and failed in the last 10 s, the
  // ledger counts it as recovered by the program. `device`: the device of the memory; no_device:
  // host memory. Costs one load if no request of the process was ever refused.
  void served(const tracking::Caller& caller, const tracking::Allocation& allocation,
              DeviceOrdinal device) noexcept {
    if (was_refused_.load(std::memory_order_relaxed))
      note_served({allocation.bytes, device, caller.api, allocation.kind});
  }

 private:
  // A counted refusal: the incident that counts it (0: none), and whether it is the incident's
  // first.
  using Refused = ledger::Refused;
  // Counts a refused request, and tries rungs. `spill_obstacle`: the reason why host memory cannot
  // serve the request; LeftOut::none if it can.
  Rescued rescue(const RefusedCall&, LeftOut spill_obstacle);
  // Counts a refused request that cuwarden does not try to serve. `result`: the driver's answer.
  // `obstacle`: the reason why no rung is tried. `given_back_bytes`: bytes that the driver gave
  // back to make room before it refused; 0: none. If the settings allow cuwarden's pool, the pool's
  // unused memory is then given back to the device.
  void refused(const tracking::Caller&, const Request&, CUresult result, LeftOut obstacle,
               std::uint64_t given_back_bytes = 0) noexcept;
  // Returns an incident for a refusal that is not counted yet, with the facts that the call itself
  // tells. `result`: the driver's answer. `given_back_bytes`: bytes that the driver gave back to
  // make room before it refused; 0: none.
  Incident refusal_of(const tracking::Caller&, const Request&, CUresult result,
                      std::uint64_t given_back_bytes) noexcept;
  // Counts a refusal by the driver in the ledger. `Incident`: the request, and the facts that the
  // call itself tells. If the refusal begins a new incident, fills in further facts and writes them
  // to the ledger. Returns the incident that counts the refusal; Refused::first tells if it is new.
  Refused note_refusal(Incident&) noexcept;
  // Counts that the program gets the error of a refused request. `Refused` and `Incident`: the
  // result and the argument of note_refusal() for the request. Returns the incident that counts the
  // request from then on. If that is a new incident, fills `Incident` in with the facts of this
  // moment and writes them to the ledger; otherwise leaves `Incident` as it was.
  Refused note_failure(const Refused&, Incident&) noexcept;
  // Fills the incident with the facts of this moment, and writes them to its row `IncidentId` of
  // the ledger.
  void describe(IncidentId, Incident&) noexcept;
  // Returns true if the program's caching allocator gets the error of the refused request, and asks
  // again before the program sees an error. `IncidentId`: the incident that counts the refusal.
  bool is_to_be_repeated(const Incident&, IncidentId) noexcept;
  // Tells the shim (`probes_`) how a refused request has ended. `Incident`: the request.
  // `IncidentId`: the incident that counts it. If that is an earlier one, tells only failures.
  void settle(const Incident&, IncidentId, Outcome) noexcept;
  // Returns the bytes of the device that this process's implicit memory takes, as far as they are
  // known; 0 for no_device. `facts`: those of the request's incident if that is new; otherwise
  // without facts of the device.
  std::uint64_t implicit_bytes(DeviceOrdinal, const ledger::IncidentFacts& facts) noexcept;
  // Returns the facts by which the ladder decides which rungs to try. `Incident`: the incident of
  // the refusal, with facts if it is a new one. `IncidentId`: the incident that counts the refusal.
  // The caller must set RescueConditions::spill_obstacle.
  RescueConditions conditions_of(const Request&, const Incident&, IncidentId) noexcept;
  // Returns true if the device's compute mode explains this result of a call that creates a
  // context.
  bool compute_mode_refuses(CUresult, DeviceOrdinal) const noexcept;
  // To be called for each `Request` that the driver or cuwarden's pool has served. If the thread's
  // last refused request equals it and failed in the last 10 s, the ledger counts that one as
  // recovered by the program. An equal refused request is then forgotten, however old. If the last
  // refused request differs, remembers that the thread was served another one.
  void note_served(const Request&) noexcept;
  // Returns a number, from 1, that no other Refusals object of the process has.
  static std::uint32_t next_serial() noexcept;

  const Parts parts_;  // the ledger, cuwarden's pools and other objects that rungs use
  tracking::AllocationRecorder& recorder_;  // tells the user if the ledger becomes incomplete
  Clock& clock_;                            // measures rungs, and the time since a refusal
  Ladder ladder_;                           // tries the rungs
  // The streams in which memory was freed (cuMemFreeAsync) and that were not synchronised since.
  PendingFrees pending_;
  IncidentProbes& probes_;  // the shim, which adds facts and judges incidents
  // Number of this object, from 1. By it, a thread of a forked child tells the refusals of its
  // parent's object from its own.
  const std::uint32_t serial_ = next_serial();
  // Bytes of this process's first context on each device, by ordinal modulo 64, as found when the
  // device's last incident began; 0: unknown.
  std::atomic<std::uint64_t> first_context_[64]{};
  std::atomic<bool> was_refused_{false};  // true once any request of the process was refused
};

}  // namespace cuwarden::rescue
