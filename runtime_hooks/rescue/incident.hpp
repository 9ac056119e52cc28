// A request that was refused, as a value: the facts of that moment, each filled in by the part of
// the process that knows it. The value is judged as it is; the ledger gets a copy.
#pragma once

#include <span>

#include "runtime_hooks/ledger/format/incident_facts.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/rescue/request.hpp"

namespace cuwarden::rescue {

// Lives on the stack of the thread whose request was refused.
struct Incident {
  IncidentId id;  // 0: the refusal is counted with an earlier incident, and nothing else is set
  GroupId group;  // of the call that was refused
  Request request;
  ledger::IncidentFacts facts;
  ledger::IncidentHoldings holdings;

  explicit operator bool() const { return id.value != 0; }
};

// Sources of facts from outside CUDA. The shim implements the interface.
class IncidentProbes {
 public:
  // Adds facts to the incident. Called once for each incident, by the thread that met the refusal,
  // before any rung is climbed.
  virtual void explain(Incident&) noexcept = 0;
  // Called once for each incident when its outcome is known, before the call returns to the
  // program. `served`: true where a rung served the request.
  virtual void settled(const Incident&, bool served) noexcept = 0;

 protected:
  ~IncidentProbes() = default;
};

}  // namespace cuwarden::rescue
