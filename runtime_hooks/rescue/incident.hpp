// An incident as a value: a refused request and the facts of that moment, each filled in by the
// part of cuwarden that knows it. The ledger gets a copy.
#pragma once

#include <cstdint>

#include "runtime_hooks/ledger/format/incident_facts.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/rescue/request.hpp"

namespace cuwarden::rescue {

// A request that was refused for lack of memory, with the facts known at that moment. Lives on the
// stack of the thread that made the request.
struct Incident {
  // Row of the incident in the ledger. 0: the ledger counts the refusal with an earlier incident of
  // the call site, or with none. No further facts are then asked of the device and the host.
  IncidentId id{};
  GroupId group;    // group of the call site that made the request; 0: there was no room for one
  Request request;  // the refused request: its size, device, function and kind
  // The driver's error, the live memory, and the state of device and host at the refusal. Facts
  // that are not known have no value.
  ledger::IncidentFacts facts;
  // The groups (allocations of one call site) that hold most memory of the request's device; for a
  // request for host memory, most memory of the host. Behind them may stand groups that lock many
  // bytes: free memory in slabs (2 MiB units of the driver) that are partly live.
  ledger::IncidentHoldings holdings{};
  // Other processes that use the request's device: those that advice may name, at most three for
  // each way of finding them. Their texts lie in the ledger.
  ledger::NamedProcesses others{};

  // True if the refusal has begun an incident, a row in the ledger that counts it and later
  // refusals.
  explicit operator bool() const { return id.value != 0; }
};

// The outcome of a refused request. served: a rung (an attempt of cuwarden's) has served it.
// to_be_repeated: the program's caching allocator gets the error, empties its cache and asks again,
// so that the program may never see an error. failed: the program gets the error.
enum class Outcome : std::uint8_t { served, to_be_repeated, failed };

// Sources of facts that the CUDA driver does not tell, such as limits of the host and other
// processes on the device. The shim (the part of cuwarden that is preloaded) implements it.
class IncidentProbes {
 public:
  // Adds facts to the incident (a refused request) and to its rows in the ledger. Called once for
  // each new incident, by the thread whose request was refused: usually before any rung (attempt to
  // serve the request) is tried. If the incident begins only because no rung has served the
  // request, called after the rungs.
  virtual void explain(Incident&) noexcept = 0;
  // Takes note of the outcome of a new incident (a refused request). Called once, before the
  // refused call returns to the program.
  virtual void settled(const Incident&, Outcome) noexcept = 0;
  // Takes note that a request has failed which is counted with an earlier incident, the second
  // parameter: a row of the ledger. Called before the refused call returns to the program.
  virtual void failed_again(const Incident&, IncidentId) noexcept = 0;

 protected:
  ~IncidentProbes() = default;
};

}  // namespace cuwarden::rescue
