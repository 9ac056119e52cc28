// Requests that the driver refused for lack of memory: each is an incident of the ledger, and
// climbs the ladder where rescues are on.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/rescue/ladder.hpp"
#include "runtime_hooks/rescue/process_means.hpp"
#include "runtime_hooks/rescue/refused_request.hpp"
#include "runtime_hooks/tracking/allocation_recorder.hpp"

namespace cuwarden::rescue {

// Called twice for each call stack whose request was refused, by the thread that met the refusal,
// before the call returns to the program: at once, so that facts outside CUDA may be added, and
// when the outcome is known.
enum class Stage : std::uint8_t { refused, settled };
using IncidentNotice = void (*)(IncidentId, Stage) noexcept;

class Refusals {
 public:
  // `notice` may be null. All references outlive the object.
  Refusals(const Parts& parts, tracking::AllocationRecorder& recorder, const Settings& settings,
           IncidentNotice notice) noexcept
      : parts_(parts), recorder_(recorder), ladder_(settings), notice_(notice) {}

  // True where refused requests climb the ladder.
  bool rescues() const noexcept { return ladder_.enabled(); }
  PendingFrees& pending() noexcept { return pending_; }

  // To be called after the driver refused `request`, which asks the driver once more. Returns true
  // where the request was served after all. `receive` receives the address where that was with
  // other memory than the driver's; null: only the driver's memory will do. Not noexcept: a thread
  // may be cancelled inside the driver.
  bool rescue(const tracking::Caller&, const tracking::Allocation& asked_for,
              FunctionRef<CUresult()> request, const serving::ReceiveAddress* receive);
  // A request for memory was refused, and no ladder is climbed for it.
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
  // A request was served: where the same one was refused to this thread shortly before, the program
  // has recovered by itself. Costs one load where nothing was refused.
  void served(const RefusedRequest& request) noexcept {
    if (was_refused_.load(std::memory_order_relaxed)) note_served(request);
  }

 private:
  using Refused = ledger::Refused;
  void refused(const tracking::Caller&, const RefusedRequest&, CUresult, ledger::Asked) noexcept;
  Refused note_refusal(const RefusedRequest&, const ledger::Refusal&) noexcept;
  Refused note_failure(const Refused&, const RefusedRequest&, const ledger::Refusal&) noexcept;
  void describe(IncidentId, const RefusedRequest&, ledger::Asked) noexcept;
  void tell_of_failure(const Refused& known, const Refused& failed) noexcept;
  void tell(const Refused& refused, Stage stage) noexcept {
    if (refused.first && notice_ != nullptr) notice_(refused.incident, stage);
  }
  Situation situation(const RefusedRequest&, GroupId, IncidentId) noexcept;
  bool climb(const RefusedCall&, const RefusedRequest&, const Situation&, const Refused&,
             class TriedRungs&);
  bool compute_mode_refuses(CUresult, DeviceOrdinal) const noexcept;
  void note_served(const RefusedRequest&) noexcept;
  static std::uint32_t next_serial() noexcept;

  const Parts parts_;
  tracking::AllocationRecorder& recorder_;
  Ladder ladder_;
  PendingFrees pending_;
  const IncidentNotice notice_;
  const std::uint32_t serial_ = next_serial();
  std::atomic<bool> was_refused_{false};  // some request of the process
};

}  // namespace cuwarden::rescue
