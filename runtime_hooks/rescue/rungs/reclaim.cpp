// The reclaim rung calls registered functions that give back cached memory, one after the other.
#include <algorithm>
#include <optional>

#include "runtime_hooks/rescue/rungs/asking_modules.hpp"
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

// Calls reclaimers for one refused request.
class Turns {
 public:
  explicit Turns(Rescue& rescue)
      : rescue_(rescue),
        reclaimers_(*rescue.reclaimers),
        deadline_ns_(rescue.clock.now_ns() + rescue.settings.sync_timeout_ns) {}

  // Calls the reclaimer of this index, unless that is unsafe. Sets `failure` if the reclaimer has
  // failed.
  RungOutcome call(std::size_t turn, const Reclaimers::Entry&, std::optional<Failure>& failure);
  // Tells the user of the failure, if it is the reclaimer's first one of its kind.
  void tell_once(std::size_t turn, const Reclaimers::Entry& reclaimer, Failure failure) {
    if (reclaimers_.is_first_time(turn, failure))
      rescue_.call.parts.notices.writer.write(failure, reclaimer.name, took_ns_);
  }

 private:
  bool is_unsafe(std::string_view modules);

  Rescue& rescue_;
  Reclaimers& reclaimers_;
  const std::uint64_t deadline_ns_;  // time until which all reclaimers together are waited for
  std::uint64_t took_ns_ = 0;        // nanoseconds for which the last call was waited for
  std::optional<StackId> stack_;  // the requesting thread's whole call stack; null: not walked yet
};

// Returns true if a reclaimer of these modules (a comma-separated list) must not run. That is so if
// the requesting thread has one of the modules on its stack, since it may hold a lock that the
// reclaimer wants. It is also so if a capture forbids giving memory back.
bool Turns::is_unsafe(std::string_view modules) {
  const Parts& parts = rescue_.call.parts;
  if (parts.captures.any() || holds_lock_among(parts.process, modules)) return true;
  if (!stack_) stack_ = parts.sites.whole_stack(rescue_.call.caller);
  return !has_none_of(parts.ledger.stacks, *stack_, modules);
}

RungOutcome Turns::call(std::size_t turn, const Reclaimers::Entry& reclaimer,
                        std::optional<Failure>& failure) {
  const RefusedCall& call = rescue_.call;
  if (is_unsafe(reclaimer.modules)) return RungOutcome::unsafe;
  // A call that is no allocation may need an unknown amount. Measured: contexts need 542 MiB, and
  // graphs 229 MiB. A function that trims a cache by the given size must not be given 0.
  constexpr std::uint64_t noticeable_ns = 1'000'000'000;
  constexpr std::uint64_t unknown_need = std::uint64_t{1} << 30;
  const std::uint64_t bytes = call.request.bytes != 0 ? call.request.bytes : unknown_need;
  const Reclaimers::Wanted wanted{.real = &call.parts.real,
                                  .context = call.here.context,
                                  .device = call.request.device.value,
                                  .bytes = bytes,
                                  .deadline_ns = deadline_ns_};
  for (;;) {
    std::size_t given_back = 0;
    const std::uint64_t begun_ns = rescue_.clock.now_ns();
    const Answer answer = reclaimers_.call(turn, reclaimer.id, wanted, given_back);
    took_ns_ = rescue_.clock.now_ns() - begun_ns;
    if (answer == Answer::returned && given_back != 0 && took_ns_ >= noticeable_ns)
      failure = Failure::slow;
    // The driver is asked whatever the call's outcome was, because other threads may have freed
    // memory meanwhile, too.
    RungOutcome asked = rescue_.ask();
    // The reclaimer may have freed memory in a stream that the device has not reached yet.
    if (asked == RungOutcome::no_memory && rescue_.is_on_device()) {
      const RungOutcome settled = settle_pending_frees(rescue_, deadline_ns_);
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

LeftOut obstacle_to_reclaiming(Rescue& rescue) {
  if (rescue.reclaimers == nullptr || !rescue.reclaimers->any()) return LeftOut::nothing_there;
  if (rescue.settings.sync_timeout_ns == 0) return LeftOut::turned_off;
  if (!rescue.conditions.fits_device) return LeftOut::too_large;
  return rescue.conditions.is_last_resort_due ? LeftOut::none : LeftOut::asks_again;
}

// A turn is reported before its notice is written, which may take long. A notice about a reclaimer
// that gave nothing back is written only if the request was not served.
void run_each_reclaimer(Rescue& rescue) {
  Turns turns(rescue);
  Reclaimers& reclaimers = *rescue.reclaimers;
  Reclaimers::Entry reclaimer;
  std::uint32_t gave_nothing = 0;  // a bit, by index, for each reclaimer that gave nothing back
  for (std::size_t turn = 0; turn < Reclaimers::limit; ++turn) {
    if (!reclaimers.entry(turn, reclaimer)) continue;
    std::optional<Failure> failure;
    rescue.attempt(
        reclaim, [&] { return turns.call(turn, reclaimer, failure); }, reclaimer.name);
    if (failure == Failure::gave_nothing)
      gave_nothing |= 1u << turn;
    else if (failure)
      turns.tell_once(turn, reclaimer, *failure);
    if (rescue.outcomes.has_ended()) return;
  }
  for (std::size_t turn = 0; turn < Reclaimers::limit; ++turn)
    if ((gave_nothing >> turn & 1) != 0 && reclaimers.entry(turn, reclaimer))
      turns.tell_once(turn, reclaimer, Failure::gave_nothing);
}

}  // namespace

constinit const Rung reclaim{.name = ledger::Rung::reclaim,
                             .obstacle = obstacle_to_reclaiming,
                             .run_each = run_each_reclaimer};

}  // namespace cuwarden::rescue
