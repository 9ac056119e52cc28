// The reclaim rung calls registered functions that give back cached memory, one after the other.
#include <algorithm>
#include <optional>

#include "runtime_hooks/rescue/asking_modules.hpp"
#include "runtime_hooks/rescue/rungs/order.hpp"

namespace cuwarden::rescue {
namespace {

using Answer = Reclaimers::Answer;
using Failure = serving::ReclaimerFailure;

// Returns true if the calling thread holds a lock that is named in the comma-separated list.
bool holds_lock_among(HostProcess& process, std::string_view names) {
  constexpr std::string_view locks[] = {"python:gil"};
  return std::ranges::any_of(locks, [&](std::string_view lock) {
    return names.find(lock) != names.npos && process.holds_lock(lock);
  });
}

// Returns true if a reclaimer of these modules (a comma-separated list) must not run. That is so if
// the requesting thread has one of the modules on its stack, since it may hold a lock that the
// reclaimer wants. It is also so if a capture forbids giving memory back.
bool is_unsafe(Rescue& rescue, std::string_view modules) {
  const Parts& parts = rescue.call.parts;
  if (parts.captures.any() || holds_lock_among(parts.process, modules)) return true;
  if (!rescue.stack) rescue.stack = parts.sites.whole_stack(rescue.call.caller);
  return !has_none_of(parts.ledger.stacks, *rescue.stack, modules);
}

bool applies(Rescue& rescue, std::size_t turn) {
  const Settings& settings = rescue.settings;
  // Checked at each turn, because another thread may have registered the first reclaimer during
  // this rescue.
  return rescue.situation.is_last_resort_due && rescue.situation.fits_device &&
         settings.reclaimers != nullptr && settings.sync_timeout_ns != 0 &&
         settings.reclaimers->any() && settings.reclaimers->entry(turn, rescue.reclaimer);
}

RungOutcome call_reclaimer(Rescue& rescue, std::size_t turn, std::optional<Failure>& failure) {
  const RefusedCall& call = rescue.call;
  if (is_unsafe(rescue, rescue.reclaimer.modules)) return RungOutcome::unsafe;
  const std::uint64_t deadline_ns = rescue.reclaim_deadline_ns;
  const Reclaimers::Wanted wanted{&call.parts.real, call.here.context, call.request.device.value,
                                  call.request.bytes, deadline_ns};
  for (;;) {
    std::size_t given_back = 0;
    const Answer answer =
        rescue.settings.reclaimers->call(turn, rescue.reclaimer.id, wanted, given_back);
    // The driver is asked whatever the call's outcome was, because other threads may have freed
    // memory meanwhile, too.
    RungOutcome asked = rescue.ask();
    // The reclaimer may have freed memory in a stream that the device has not reached yet.
    if (asked == RungOutcome::no_memory && rescue.is_on_device()) {
      const RungOutcome settled = settle_pending_frees(rescue, deadline_ns);
      if (settled == RungOutcome::served || settled == RungOutcome::other_error) asked = settled;
    }
    if (asked != RungOutcome::no_memory) return asked;
    switch (answer) {
      case Answer::of_another:  // the reclaimer was already running for another request
        continue;
      case Answer::returned:
        if (given_back == 0) failure = Failure::gave_nothing;
        return given_back == 0 ? RungOutcome::nothing_to_do : RungOutcome::no_memory;
      case Answer::timed_out:
        failure = Failure::does_not_return;
        return RungOutcome::timed_out;
      case Answer::threw:
        failure = Failure::threw;
        return RungOutcome::failed;
      case Answer::no_thread:
        failure = Failure::no_thread;
        return RungOutcome::failed;
      case Answer::gone:
        return RungOutcome::nothing_to_do;
    }
  }
}

void tell_once(const Rescue& rescue, std::size_t turn, Failure failure) {
  if (rescue.settings.reclaimers->is_first_time(turn, failure))
    rescue.call.parts.notices.tell_of_reclaimer(rescue.reclaimer.name, failure);
}

RungOutcome run(Rescue& rescue, std::size_t turn) {
  if (rescue.reclaim_deadline_ns == 0)
    rescue.reclaim_deadline_ns = rescue.clock.now_ns() + rescue.settings.sync_timeout_ns;
  rescue.failure.reset();
  return call_reclaimer(rescue, turn, rescue.failure);
}

// The turn is reported before its notice is written, which may take long.
void told(Rescue& rescue, std::size_t turn) {
  if (rescue.failure == Failure::gave_nothing)
    rescue.gave_nothing |= 1u << turn;
  else if (rescue.failure)
    tell_once(rescue, turn, *rescue.failure);
}

// A notice about a reclaimer that gave nothing back is written only if the request was not served.
void in_vain(Rescue& rescue) {
  for (std::size_t turn = 0; turn < Reclaimers::limit; ++turn)
    if ((rescue.gave_nothing >> turn & 1) != 0 &&
        rescue.settings.reclaimers->entry(turn, rescue.reclaimer))
      tell_once(rescue, turn, Failure::gave_nothing);
}

}  // namespace

constinit const Rung reclaim{.name = ledger::Rung::reclaim,
                             .applies = applies,
                             .run = run,
                             .turns = Reclaimers::limit,
                             .in_vain = in_vain,
                             .told = told};

}  // namespace cuwarden::rescue
