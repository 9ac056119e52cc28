#include "runtime_hooks/rescue/rungs/rung.hpp"

#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"

namespace cuwarden::rescue {

void Rescue::attempt(const Rung& rung, FunctionRef<RungOutcome()> run, std::string_view reclaimer) {
  ledger::Threads& threads = call.parts.ledger.threads;
  const std::uint64_t begun_ns = clock.now_ns();
  threads.begin_rung(tried.counted_by(), rung.name, call.request.bytes);
  tried.add({rung.name, RungOutcome::under_way, 0, reclaimer});
  outcomes.last = run();
  tried.add({rung.name, outcomes.last, clock.now_ns() - begun_ns, reclaimer});
  threads.end_rung();
  if (rung.obstacles_last) return;
  outcomes.last_that_counts = outcomes.last;
  outcomes.timed_out = outcomes.timed_out || outcomes.last == RungOutcome::timed_out;
  outcomes.unsafe = outcomes.unsafe || outcomes.last == RungOutcome::unsafe;
}

}  // namespace cuwarden::rescue
