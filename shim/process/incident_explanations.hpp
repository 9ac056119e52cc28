// Explains incidents (requests that were refused for lack of memory) while the program waits for
// the call to return: by facts from outside CUDA, a message with a verdict, and a report on disk.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/incident.hpp"
#include "runtime_hooks/tracking/call_sites.hpp"

namespace cuwarden::shim {

// Adds facts from outside CUDA to incidents, judges them, and writes a report. Details are left out
// after 64 incidents, or once two seconds were spent in all. A thread that a seccomp filter
// confines explains nothing. There is one object in a process.
class IncidentExplanations final : public rescue::IncidentProbes {
 public:
  // Sets the ledger to write to and the object that walks stacks, and forgets the incidents counted
  // so far. To be called before all other functions, and again in a forked child. Both references
  // must outlive the object.
  void begin(ledger::Writer& ledger, tracking::CallSites& sites) noexcept;

  // Adds facts to the incident: limits of the host, locked slabs, other processes. Called once for
  // each incident, before anything is tried to serve the request. Adds nothing if there is no
  // memory.
  void explain(rescue::Incident&) noexcept override;
  // Judges the incident and writes a log line with the verdict. If the request stays refused, also
  // writes a report, at the first incident with this verdict. `served`: true if the request was
  // served after all.
  void settled(const rescue::Incident&, bool served) noexcept override;

 private:
  // Calls work() and adds its time to spent_ns_. Does nothing once spent_ns_ exceeds two seconds.
  template <class Work>
  void within_the_budget(const Work&);
  // Does the work of explain(). May throw std::bad_alloc.
  void add_facts(rescue::Incident&);
  // Does the work of settled(). May throw std::bad_alloc.
  void tell_verdict(const rescue::Incident&, bool served);

  // The ledger to write to, and the object that walks stacks; both null before begin().
  ledger::Writer* ledger_ = nullptr;
  tracking::CallSites* sites_ = nullptr;
  std::atomic<std::uint32_t> explained_{0};  // number of incidents that add_facts() was called for
  std::atomic<std::uint64_t> spent_ns_{0};   // time that within_the_budget() has taken in all
};

}  // namespace cuwarden::shim
