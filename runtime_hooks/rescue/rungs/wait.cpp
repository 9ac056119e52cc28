// The wait rung waits for memory that other processes free, and asks the driver now and then.
#include <algorithm>

#include "runtime_hooks/core/files/proc_memory.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

// Returns the reason for which memory of other processes could not serve the request; none if it
// could, beside this process's own contexts. Goes by the memory that is live now, since a rung may
// have freed some. A call that needs an unknown amount does not lack memory while much is free.
LeftOut obstacle_for_other_processes(const Rescue& rescue) {
  constexpr std::uint64_t enough_for_a_call = std::uint64_t{2} << 30;
  const Parts& parts = rescue.call.parts;
  const Request& request = rescue.call.request;
  if (request.bytes == 0 && request.device == rescue.call.here.device) {
    const auto reading = driver::read_current_device(parts.real);
    if (reading && reading->free_bytes > enough_for_a_call) return LeftOut::much_is_free;
  }
  const std::uint64_t total = parts.queries.total_bytes_of(request.device);
  if (total == 0) return LeftOut::none;
  if (request.bytes > total) return LeftOut::too_large;
  const std::uint64_t live = parts.ledger.totals.live_bytes_on(request.device);
  const std::uint64_t there =
      live - std::min(live, parts.ledger.devices.spilled_bytes_on(request.device));
  const std::uint64_t left = total - request.bytes;
  if (there > left || rescue.conditions.implicit_bytes > left - there) return LeftOut::own_memory;
  // The driver counts the page cache as used. Memory that the kernel could free at once is not held
  // by other processes.
  const std::uint64_t needed = request.bytes != 0 ? request.bytes : enough_for_a_call;
  const bool is_cached =
      parts.queries.is_integrated(request.device) && host_memory_available() >= needed;
  return is_cached ? LeftOut::page_cache : LeftOut::none;
}

LeftOut obstacle_to_waiting(Rescue& rescue) {
  if (rescue.settings.wait_ns == 0) return LeftOut::turned_off;
  if (!rescue.conditions.is_last_resort_due) return LeftOut::asks_again;
  return obstacle_for_other_processes(rescue);
}

RungOutcome wait_until(Rescue& rescue, std::uint64_t begun_ns, std::uint64_t deadline_ns) {
  constexpr std::uint64_t first_sleep_ns = 5'000'000, longest_sleep_ns = 200'000'000;
  constexpr std::uint64_t pending_ns = 2'000'000;  // enough for an event in an idle stream
  for (std::uint64_t sleep = first_sleep_ns;; sleep = std::min(2 * sleep, longest_sleep_ns)) {
    const std::uint64_t now = rescue.clock.now_ns();
    if (now >= deadline_ns) return RungOutcome::timed_out;
    rescue.clock.sleep_ns(std::min(sleep, deadline_ns - now));
    // Frees of this process may be pending, too.
    RungOutcome answer = rescue.is_on_device()
                             ? settle_pending_frees(rescue, rescue.clock.now_ns() + pending_ns)
                             : RungOutcome::nothing_to_do;
    // After any other outcome the driver was already asked.
    if (answer == RungOutcome::nothing_to_do || answer == RungOutcome::timed_out ||
        answer == RungOutcome::unsafe)
      answer = rescue.ask();
    if (answer != RungOutcome::no_memory) return answer;
    rescue.tried.add(
        {ledger::Rung::wait, RungOutcome::under_way, rescue.clock.now_ns() - begun_ns, {}});
  }
}

RungOutcome wait_for_memory(Rescue& rescue) {
  const Request& request = rescue.call.request;
  rescue.call.parts.notices.tell_once(serving::Notice::waits, request.device, request.bytes);
  const std::uint64_t begun_ns = rescue.clock.now_ns();
  const RungOutcome outcome = wait_until(rescue, begun_ns, begun_ns + rescue.settings.wait_ns);
  rescue.earlier.waited_ns.store(outcome == RungOutcome::timed_out ? rescue.clock.now_ns() : 0,
                                 std::memory_order_relaxed);
  return outcome;
}

}  // namespace

constinit const Rung wait{
    .name = ledger::Rung::wait, .obstacle = obstacle_to_waiting, .run = wait_for_memory};

}  // namespace cuwarden::rescue
