// Explains incidents while the program waits for its refused request: facts from outside CUDA, a
// verdict in a message, and a report on disk, whatever happens next.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/rescue/incident.hpp"

namespace cuwarden::shim {

// Explains incidents: adds facts from outside CUDA, judges them, and writes the report of an
// incident. There is one object in a process.
class IncidentExplanations final : public rescue::IncidentProbes {
 public:
  // Sets the ledger to write to. To be called before all other functions, and again in a forked
  // child.
  void begin(ledger::Writer& ledger) noexcept;

  void explain(rescue::Incident&) noexcept override;
  void settled(const rescue::Incident&, bool served) noexcept override;

 private:
  template <class Work>
  void within_the_budget(const Work&);
  void add_facts(rescue::Incident&);
  void tell_verdict(const rescue::Incident&, bool served);

  ledger::Writer* ledger_ = nullptr;
  std::atomic<std::uint32_t> explained_{0};
  std::atomic<std::uint64_t> spent_ns_{0};
};

}  // namespace cuwarden::shim
