// Requests that the driver refused for lack of memory: each is an incident of the ledger, and
// climbs the ladder where rescues are on.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/rescue/incident.hpp"
#include "runtime_hooks/rescue/ladder.hpp"
#include "runtime_hooks/rescue/parts.hpp"
#include "runtime_hooks/rescue/request.hpp"
#include "runtime_hooks/tracking/allocation_recorder.hpp"

namespace cuwarden::rescue {

class Refusals {
 public:
  // All references outlive the object.
  Refusals(const Parts& parts, tracking::AllocationRecorder& recorder, const Settings& settings,
           IncidentProbes& probes) noexcept
      : parts_(parts), recorder_(recorder), ladder_(settings), probes_(probes) {}

  // True where refused requests climb the ladder.
  bool rescues() const noexcept { return ladder_.enabled(); }
  PendingFrees& pending() noexcept { return pending_; }

  // To be called after the driver refused `request`, which asks the driver once more. Not noexcept:
  // a thread may be cancelled inside the driver.
  Rescued rescue(const tracking::Caller&, const tracking::Allocation& asked_for,
                 FunctionRef<CUresult()> request, Accepts);
  // Counts a refused request for memory that no rung is tried for.
  void refused(const tracking::Caller&, const tracking::Allocation& asked_for) noexcept;
  // To be called after a call that asks for something else than memory, on this device or the
  // current one. Does something only where the call was refused for lack of memory, or a context by
  // the compute mode.
  void refused(const tracking::Caller&, CUresult, ledger::Asked,
               DeviceOrdinal = no_device) noexcept;
  struct Needed {
    // Bytes that the call needed for itself; 0 if unknown. When nonzero, errors other than
    // OUT_OF_MEMORY count as refusals, too.
    std::uint64_t bytes = 0;
    std::uint64_t given_back = 0;  // bytes that the driver gave back in vain
  };
  // To be called after a call that needs memory for itself. Does something only where the call was
  // refused for lack of memory.
  void refused_for_itself(const tracking::Caller&, CUresult, ledger::Asked, DeviceOrdinal,
                          const Needed&) noexcept;
  // To be called after a request was served without a rescue, on this device. If an equal request
  // was refused to this thread shortly before, notes that the program has recovered by itself.
  // Costs one load if nothing was refused.
  void served(const tracking::Caller& caller, const tracking::Allocation& allocation,
              DeviceOrdinal device) noexcept {
    if (was_refused_.load(std::memory_order_relaxed))
      note_served({allocation.bytes, device, caller.api, allocation.kind});
  }

 private:
  using Refused = ledger::Refused;
  // `result`: the driver's answer.
  void refused(const tracking::Caller&, const Request&, CUresult result) noexcept;
  // Both fill `incident` in where they begin a new one. The second returns the refusal as it is
  // counted from now on.
  Refused note_refusal(const Request&, const ledger::Refusal&, Incident&) noexcept;
  Refused note_failure(const Refused&, const Request&, const ledger::Refusal&, Incident&) noexcept;
  void describe(IncidentId, const Request&, const ledger::Refusal&, Incident&) noexcept;
  void settle(const Incident& incident, bool served) noexcept {
    if (incident) probes_.settled(incident, served);
  }
  Situation situation(const Request&, GroupId, IncidentId) noexcept;
  bool compute_mode_refuses(CUresult, DeviceOrdinal) const noexcept;
  void note_served(const Request&) noexcept;
  static std::uint32_t next_serial() noexcept;

  const Parts parts_;
  tracking::AllocationRecorder& recorder_;
  Ladder ladder_;
  PendingFrees pending_;
  IncidentProbes& probes_;
  const std::uint32_t serial_ = next_serial();
  std::atomic<bool> was_refused_{false};  // some request of the process
};

}  // namespace cuwarden::rescue
