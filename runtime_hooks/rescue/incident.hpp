// An incident as a value: a refused request and facts about the moment of the refusal. Each fact is
// filled in by the part of cuwarden that knows it. The ledger gets a copy.
#pragma once

#include <cstdint>

#include "runtime_hooks/ledger/format/incident_facts.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/rescue/rungs/request.hpp"

namespace cuwarden::rescue {

// A request that was refused for lack of memory, or a context that the compute mode refused, with
// the facts known at that moment. Lives on the stack of the thread that made the request.
struct Incident {
  // Row of the incident in the ledger. 0: the refusal is counted with an earlier incident of the
  // call site, or with none. The device and the host are then asked for no further facts.
  IncidentId id{};
  GroupId group;    // group of the requesting call site; 0: the ledger had no room for one
  Request request;  // the refused request: its size, device, function and kind
  // The driver's error, the live memory, and the state of device and host at the refusal. Facts
  // that are not known have no value.
  ledger::IncidentFacts facts;
  // The groups that hold most memory of the request's device; if it is for host memory, most memory
  // of the host. Groups that lock many bytes may follow: unused bytes in slabs (2 MiB units of the
  // driver) that are partly live.
  ledger::IncidentHoldings holdings{};
  // Other processes that use the request's device and that advice to the user may name: at most
  // three for each way of finding them. Their texts lie in the ledger.
  ledger::NamedProcesses others{};

  // True if the refusal has begun an incident: a row in the ledger that counts this refusal and
  // later ones.
  explicit operator bool() const { return id.value != 0; }
};

// The outcome of a refused request. `served`: a rung has served it. `to_be_repeated`: the program's
// caching allocator gets the error, empties its cache and asks again, so the program may never see
// an error. `failed`: the program gets the error.
enum class Outcome : std::uint8_t { served, to_be_repeated, failed };

// Adds facts to incidents that the CUDA driver does not tell, such as limits of the host and other
// processes on the device. Also judges incidents. The shim (the preloaded part of cuwarden)
// implements it.
class IncidentProbes {
 public:
  // Adds facts to the incident (a refused request) and to its rows in the ledger. Called once for
  // each new incident, by the thread whose request was refused. Usually called before any rung is
  // tried. If the incident begins only because no rung has served the request, called after the
  // rungs.
  virtual void explain(Incident&) noexcept = 0;
  // Takes note of the outcome of a new incident. Called once, before the refused call returns to
  // the program.
  virtual void settled(const Incident&, Outcome) noexcept = 0;
  // Takes note of a failed request that an earlier incident counts. `Incident`: the failed request,
  // whose `id` is 0. `IncidentId`: the earlier incident. Called before the refused call returns to
  // the program.
  virtual void failed_again(const Incident&, IncidentId) noexcept = 0;

 protected:
  ~IncidentProbes() = default;
};

}  // namespace cuwarden::rescue
