#include "runtime_hooks/rescue/ladder.hpp"

#include "runtime_hooks/core/clock.hpp"

namespace cuwarden::rescue {
namespace {

using Trouble = Reclaimers::Trouble;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint64_t again_after_ns = 100'000'000;

// Not so long ago that somebody is likely to have gone.
bool was_in_vain(const std::atomic<std::uint64_t>& until_ns, std::uint64_t waited_ns) noexcept {
  const std::uint64_t until = until_ns.load(relaxed);
  return until != 0 && (now_ns() - until) / vain_times < waited_ns;
}

}  // namespace

bool Ladder::is_worth_climbing(const Situation& now) const noexcept {
  const Failed& before = failed_[now.device % places];
  const std::uint64_t time = before.time_ns.load(relaxed);
  return time == 0 || now_ns() - time >= again_after_ns || now.bytes < before.bytes.load(relaxed) ||
         now.live_bytes < before.live_bytes.load(relaxed) ||
         now.noted != before.noted.load(relaxed) ||
         (has_last_resorts() && now.is_last_resort_due &&
          (!before.tried_all.load(relaxed) || reclaimers() != before.reclaimers.load(relaxed) ||
           (now.can_spill && !before.tried_spill.load(relaxed))));
}

bool Ladder::holds_lock_among(std::string_view names) const noexcept {
  constexpr std::string_view locks[] = {"python:gil"};
  for (const std::string_view lock : locks)
    if (settings_.holds_lock != nullptr && names.find(lock) != names.npos &&
        settings_.holds_lock(lock))
      return true;
  return false;
}

void Ladder::found_nothing(const Situation& now, bool tried_all) noexcept {
  Failed& here = failed_[now.device % places];
  here.live_bytes.store(now.live_bytes, relaxed);
  here.bytes.store(now.bytes, relaxed);
  here.noted.store(now.noted, relaxed);
  here.tried_all.store(tried_all, relaxed);
  here.tried_spill.store(tried_all && now.can_spill, relaxed);
  here.reclaimers.store(reclaimers(), relaxed);
  here.time_ns.store(now_ns(), relaxed);
}

// A trouble is said at once, but that one had nothing to give: only where nobody had.
template <class Ends>
bool Ladder::reclaim_ends(const Attempt& attempt, const Ends& ends) {
  Reclaimers& all = *settings_.reclaimers;
  std::uint32_t gave_nothing = 0;  // a bit for each place
  const auto say = [&](std::size_t place, const Reclaimers::Entry& entry, Trouble trouble) {
    if (settings_.trouble != nullptr && all.is_news(place, trouble))
      settings_.trouble(entry.name, trouble);
  };
  const std::uint64_t deadline_ns = now_ns() + settings_.sync_timeout_ns;
  Reclaimers::Entry entry;
  for (std::size_t place = 0; place < Reclaimers::limit; ++place) {
    if (!all.entry(place, entry)) continue;
    std::optional<Trouble> trouble;
    const auto take = [&] { return reclaim(attempt, all, place, entry, deadline_ns, trouble); };
    const bool ended = ends(Rung::reclaim, take, entry.name);
    if (trouble == Trouble::gave_nothing)
      gave_nothing |= 1u << place;
    else if (trouble)
      say(place, entry, *trouble);
    if (ended) return true;
  }
  for (std::size_t place = 0; place < Reclaimers::limit; ++place)
    if ((gave_nothing >> place & 1) != 0 && all.entry(place, entry))
      say(place, entry, Trouble::gave_nothing);
  return false;
}

// A device that is at work for longer is not waited for with each request.
RungOutcome Ladder::synchronise_there(const Attempt& attempt, const Situation& now) {
  std::atomic<std::uint64_t>& vain_ns = failed_[now.device % places].synchronised_ns;
  const std::uint64_t begun = now_ns();
  const bool only_looks = was_in_vain(vain_ns, settings_.sync_timeout_ns);
  const RungOutcome outcome =
      synchronise(attempt, only_looks ? begun : begun + settings_.sync_timeout_ns);
  if (outcome != RungOutcome::timed_out)
    vain_ns.store(0, relaxed);
  else if (!only_looks)
    vain_ns.store(now_ns(), relaxed);
  return outcome;
}

RungOutcome Ladder::wait_there(const Attempt& attempt, const Situation& now,
                               FunctionRef<void(const Climbed&)> climbed) {
  const std::uint64_t begun_ns = now_ns();
  const auto goes_on = [&] {
    climbed({Rung::wait, RungOutcome::under_way, now_ns() - begun_ns, {}});
  };
  const RungOutcome outcome = wait(attempt, begun_ns + settings_.wait_ns, goes_on);
  failed_[now.device % places].waited_ns.store(outcome == RungOutcome::timed_out ? now_ns() : 0,
                                               relaxed);
  return outcome;
}

bool Ladder::has_waited_in_vain(const Situation& now) const noexcept {
  return was_in_vain(failed_[now.device % places].waited_ns, settings_.wait_ns);
}

// From what costs nothing to what costs the program time, and then others theirs. Pools come after
// pending frees: what they keep is the program's own provision, and the driver takes it by itself
// for most requests. The host's memory is slow, but who has it need not wait with each request.
bool Ladder::climb(const Attempt& attempt, const Situation& now,
                   FunctionRef<void(const Climbed&)> climbed) {
  RungOutcome last{}, last_but_mesh{};
  bool timed_out = false, unsafe = false, pool_waits = false;
  const auto ends = [&](Rung rung, auto&& take, std::string_view reclaimer = {}) {
    const std::uint64_t begun_ns = now_ns();
    climbed({rung, RungOutcome::under_way, 0, reclaimer});
    last = take();
    climbed({rung, last, now_ns() - begun_ns, reclaimer});
    // What keeps the pool's memory where it is may do so for ever.
    if (rung != Rung::mesh) last_but_mesh = last;
    timed_out = timed_out || last_but_mesh == RungOutcome::timed_out;
    unsafe = unsafe || last_but_mesh == RungOutcome::unsafe;
    pool_waits = pool_waits || (rung == Rung::pool && last == RungOutcome::unsafe);
    return last == RungOutcome::served || last == RungOutcome::other_error;
  };
  const bool can_spill = now.is_last_resort_due && now.can_spill;
  const bool spills_first = can_spill && has_waited_in_vain(now);
  const bool ended =
      ends(Rung::retry, [&] { return retry(attempt); }) ||
      (attempt.device >= 0 &&
       (ends(Rung::synchronise, [&] { return synchronise_there(attempt, now); }) ||
        ends(Rung::trim, [&] { return trim(attempt); }))) ||
      (attempt.has_pool && ends(Rung::pool, [&] { return empty_pool(attempt); })) ||
      (now.is_last_resort_due && now.fits_device && attempt.can_mesh && !pool_waits &&
       ends(Rung::mesh, [&] { return mesh(attempt); })) ||
      (now.is_last_resort_due && now.fits_device && has_reclaimers() &&
       reclaim_ends(attempt, ends)) ||
      (spills_first && ends(Rung::spill, attempt.spill)) ||
      (now.is_last_resort_due && settings_.wait_ns != 0 && attempt.may_others_help() &&
       ends(Rung::wait, [&] { return wait_there(attempt, now, climbed); })) ||
      (can_spill && !spills_first && ends(Rung::spill, attempt.spill));
  // What the device had not come to by then it may have come to soon, and a capture ends.
  if (!ended && !pool_waits && !(timed_out && last_but_mesh != RungOutcome::timed_out))
    found_nothing(now, now.is_last_resort_due && !unsafe);
  return last == RungOutcome::served;
}

}  // namespace cuwarden::rescue
