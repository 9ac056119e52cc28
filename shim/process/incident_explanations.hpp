// Explains incidents (requests that were refused for lack of memory) while the program waits for
// the call to return: by facts from outside CUDA, a message with a verdict, and a report on disk.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/incident.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"
#include "shim/policy/failure_lines.hpp"

namespace cuwarden::shim {

// Adds facts from outside CUDA to incidents (requests that were refused for lack of memory), finds
// each one's cause, and writes a report. At most 64 incidents get such facts, and none once
// explanations have taken two seconds in all; later ones have only the driver's figures. In a
// thread that a seccomp filter of the program confines, explain() and settled() do nothing. There
// is one object in a process.
class IncidentExplanations final : public rescue::IncidentProbes {
 public:
  // Sets the ledger to write to and the object that walks stacks. Both must outlive this object.
  // Sets the number of explained incidents, and the time that they took, to zero; each of the two
  // has a limit. To be called before all other functions, and again in a forked child.
  void begin(ledger::Writer& ledger, tracking::CallSites& sites) noexcept;

  // Adds facts to the incident (a refused request): the host's memory and its limits, locked memory
  // (free, but in partly live slabs of the driver), other processes on the device. Called once for
  // each incident: usually before cuwarden tries to serve the request, or after all attempts if the
  // incident begins only then. Also stores the CUDA runtime's version in the ledger. If memory runs
  // out, facts that were added until then stay.
  void explain(rescue::Incident&) noexcept override;
  // Finds the verdict (the cause) of an incident (a refused request). If the request stays refused,
  // writes a report, at the first such incident with this verdict. If the program gets the error,
  // warns the user in one line, once for each verdict. If the program's caching allocator repeats
  // the request first, keeps the line for failed_again(). Called once for each incident, when its
  // outcome is known. Leaves out incidents after the first 64 once explanations have taken two
  // seconds in all. For each incident, has a Python interpreter of the process asked later for
  // frameworks' figures (InterpreterCalls::ask()).
  void settled(const rescue::Incident&, rescue::Outcome) noexcept override;
  // Writes the line about the incident that settled() has kept, if there is one: the program gets
  // the error now. `IncidentId`: row of the incident in the ledger.
  void failed_again(const rescue::Incident&, IncidentId) noexcept override;
  // Writes the lines about refused requests that settled() has kept and failed_again() has not
  // written. Leaves out incidents whose requests were all served in the end. To be called when the
  // process ends; does nothing before begin().
  void end() noexcept;

 private:
  // Calls work() and adds its time to spent_ns_. Does nothing once spent_ns_, the time that
  // explanations took in all, exceeds two seconds, unless `always` is true.
  template <class Work>
  void within_the_budget(bool always, const Work&);
  // Does the work of explain(): adds facts from outside CUDA to the incident. May throw
  // std::bad_alloc.
  void add_facts(rescue::Incident&);
  // Does the work of settled(): finds the incident's verdict and tells the user. Later incidents
  // than the first 64 are left out once explanations have taken two seconds in all. May throw
  // std::bad_alloc.
  void tell_verdict(const rescue::Incident&, rescue::Outcome);
  // Finds the incident's verdict, writes a report and tells the user, whatever time that takes. May
  // throw std::bad_alloc.
  void judge_and_tell(const rescue::Incident&, rescue::Outcome);

  // The ledger that gets the facts about incidents; null before begin().
  ledger::Writer* ledger_ = nullptr;
  // The object that walks stacks; null before begin().
  tracking::CallSites* sites_ = nullptr;
  // Number of incidents that were explained since begin(); at most 64 are.
  std::atomic<std::uint32_t> explained_{0};
  // Nanoseconds that the work of explain() and settled() took since begin().
  std::atomic<std::uint64_t> spent_ns_{0};
  // Number of calls of tell_verdict() since begin(): incidents whose verdict was to be found.
  std::atomic<std::uint32_t> judged_{0};
  FailureLines lines_;  // lines to the user about failed requests
};

}  // namespace cuwarden::shim
