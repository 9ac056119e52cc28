// The synchronise rung waits for stream-ordered frees that the device has not reached. The driver
// gives such memory to no other request before.
#include <algorithm>

#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

// If the device is busy for longer than the timeout, requests do not wait for it again for a while.
// The rung then only looks if the frees were reached.
RungOutcome settle_frees(Rescue& rescue) {
  std::atomic<std::uint64_t>& vain_ns = rescue.earlier.synchronised_ns;
  const std::uint64_t begun = rescue.clock.now_ns();
  const bool only_looks = rescue.was_in_vain(vain_ns, rescue.settings.sync_timeout_ns);
  const RungOutcome outcome =
      settle_pending_frees(rescue, only_looks ? begun : begun + rescue.settings.sync_timeout_ns);
  if (outcome != RungOutcome::timed_out)
    vain_ns.store(0, std::memory_order_relaxed);
  else if (!only_looks)
    vain_ns.store(rescue.clock.now_ns(), std::memory_order_relaxed);
  return outcome;
}

}  // namespace

RungOutcome settle_pending_frees(Rescue& rescue, std::uint64_t deadline_ns) {
  constexpr std::uint64_t first_sleep_ns = 20'000, longest_sleep_ns = 1'000'000;
  const Parts& parts = rescue.call.parts;
  PendingFrees::AwaitedEvents events(rescue.call.pending, parts.real, parts.contexts,
                                     rescue.call.here.context, rescue.call.request.device,
                                     rescue.clock);
  bool had_any = events.any(), has_others = false;
  for (std::uint64_t sleep = first_sleep_ns;;) {
    if (events.synchronise_reached()) {
      if (const RungOutcome answer = rescue.ask(); answer != RungOutcome::no_memory) return answer;
    }
    // Other contexts are left alone if the current one's frees were enough.
    if (!has_others) {
      has_others = true;
      if (events.add_others()) {
        had_any = true;
        continue;
      }
    }
    if (!events.any()) {
      if (events.has_left_out()) {
        rescue.has_left_out = true;
        return RungOutcome::unsafe;
      }
      return had_any ? RungOutcome::no_memory : RungOutcome::nothing_to_do;
    }
    if (rescue.clock.now_ns() >= deadline_ns) return RungOutcome::timed_out;
    rescue.clock.sleep_ns(sleep);
    sleep = std::min(2 * sleep, longest_sleep_ns);
  }
}

constinit const Rung synchronise{
    .name = ledger::Rung::synchronise, .obstacle = unless_on_device, .run = settle_frees};

}  // namespace cuwarden::rescue
