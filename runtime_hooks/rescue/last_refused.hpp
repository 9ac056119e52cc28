// The last refused request of a thread, and how often it was refused. After a refusal, an allocator
// may empty its own cache and ask again, from another line of its code and more than once. So the
// refusals of one request may be counted with several incidents.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/rescue/rungs/request.hpp"

namespace cuwarden::rescue {

// Remembers the last refused request of one thread, to find out if an equal request is served soon
// after. `recorder`, an argument of several functions, is the number of the process's Refusals
// object. A forked child inherits the LastRefused object of its parent's thread; the number, which
// differs, tells it that the refusals are its parent's.
class LastRefused {
 public:
  // Adds a refusal by the driver. `recorder`: number of the process's Refusals object. `incident`:
  // the incident that counts the refusal; 0: none does. `now_ns`: time of the rungs' clock. Forgets
  // the earlier refusals if they were of a different request, or if the last one is more than 10 s
  // ago. Forgets them, too, if the thread was served a different request since. Before it forgets
  // them, notes for was_refused_before() if the last refusal was of a larger request on the device.
  void add(std::uint32_t recorder, const Request& request, IncidentId incident,
           std::uint64_t now_ns) noexcept {
    const bool smaller = recorder_ == recorder && request_.device == request.device &&
                         request.bytes < request_.bytes && !was_served_other_ && !is_over(now_ns);
    if (recorder_ != recorder || request_ != request || was_served_other_ || is_over(now_ns))
      *this = {};
    had_larger_ = had_larger_ || smaller;
    recorder_ = recorder;
    request_ = request;
    time_ns_ = now_ns;
    count(incident);
  }
  // Returns true if the thread was refused an equal or larger request on the device before, and was
  // served no other request since. `recorder`: number of the process's Refusals object. `now`: the
  // incident that counts the present refusal, which add() must have added already.
  bool was_refused_before(std::uint32_t recorder, const Request& request,
                          IncidentId now) const noexcept {
    if (recorder_ != recorder || request_.device != request.device || was_served_other_)
      return false;
    for (const Count& count : counts_)
      if (count.times > (count.incident == now ? 1u : 0u)) return true;
    return had_larger_;
  }
  // Forgets all refusals, because a rung has served the request that add() added last. Before that,
  // calls visit(incident, times) for each incident that counts earlier refusals of the request.
  // `times`: number of these refusals, each of which the program saw as an error. `now`: incident
  // that counts the refusal that the rung has dealt with. `recorder`: number of the process's
  // Refusals object.
  template <class Visit>
  void rescued(std::uint32_t recorder, IncidentId now, const Visit& visit) noexcept {
    for (const Count& count : counts_) {
      const std::uint32_t times = count.times - (count.incident == now && count.times > 0 ? 1 : 0);
      if (recorder_ == recorder && count.incident.value != 0 && times > 0)
        visit(count.incident, times);
    }
    *this = {};
  }
  // Lets the incident `to` count the thread's last refusal instead of the incident `from`. `from`:
  // the incident that counts it so far: the argument of add(), or `to` of the last moved() since.
  // Neither is 0.
  void moved(IncidentId from, IncidentId to) noexcept {
    for (Count& count : counts_) {
      if (count.incident != from) continue;
      if (--count.times == 0) count = {};
      break;
    }
    count(to);
  }
  // Sets the time of the last refusal to that at which the program gets the error, because attempts
  // to serve the request may have taken long. `now_ns`: time of the rungs' clock. An equal request
  // that is served within 10 s of this time counts as the program's next attempt.
  void refused_at(std::uint64_t now_ns) noexcept { time_ns_ = now_ns; }
  // To be called after the driver has served `request` without refusing it. If an equal request was
  // refused last, calls visit(incident, times) for each incident that counts its refusals, and
  // forgets them. `times`: number of these refusals. If they are more than 10 s of `clock` ago,
  // only forgets them. If a different request was refused last, only notes that another one was
  // served. `recorder`: number of the process's Refusals object.
  template <class Visit>
  void served(std::uint32_t recorder, const Request& request, Clock& clock,
              const Visit& visit) noexcept {
    if (counts_[0].times == 0 || recorder_ != recorder) return;
    // The thread was served a different request, so a later refusal is no repetition of the last
    // one.
    was_served_other_ = was_served_other_ || request_ != request;
    if (request_ != request) return;
    if (!is_over(clock.now_ns()))
      for (const Count& count : counts_)
        if (count.incident.value != 0) visit(count.incident, count.times);
    *this = {};
  }

 private:
  // Nanoseconds after a refusal for which an equal request counts as the program's next attempt. A
  // later request may succeed for other reasons.
  static constexpr std::uint64_t soon_ns = 10'000'000'000;
  // Returns true if the last refusal is too long ago to matter: more than 10 s before `now_ns`.
  bool is_over(std::uint64_t now_ns) const noexcept { return now_ns > time_ns_ + soon_ns; }

  // A part of the refusals of the last refused request: those that one incident (a row of the
  // ledger) counts, or those that no incident counts.
  struct Count {
    // The incident that counts the refusals of this entry; 0: none does.
    IncidentId incident;
    // Number of refusals that this entry counts; 0: the entry is unused.
    std::uint32_t times = 0;
  };
  // Adds one refusal of the last refused request to the entry of `incident` in `counts_`. 0: no
  // incident counts the refusal. Does nothing if all three entries have other incidents.
  void count(IncidentId incident) noexcept {
    for (Count& count : counts_) {
      if (count.times != 0 && count.incident != incident) continue;
      count.incident = incident;
      ++count.times;
      return;
    }
  }
  // The thread's last refused request; without meaning if `recorder_` is 0.
  Request request_;
  // Serial number of the Refusals object that has noted the refusals; 0: no request was refused. A
  // forked child makes an object with another number, and so knows that its parent noted them.
  std::uint32_t recorder_ = 0;
  // True if the thread was served a different request since its last refusal.
  bool was_served_other_ = false;
  // True if a larger request on the same device was refused to the thread before `request_`, at
  // most 10 s earlier. The thread was served no request in between.
  bool had_larger_ = false;
  // Time of the last refusal, in nanoseconds of the rungs' clock. Without meaning if `recorder_` is
  // 0.
  std::uint64_t time_ns_ = 0;
  // Refusals of the last refused request, by the incidents that count them: at most three.
  Count counts_[3];
};

}  // namespace cuwarden::rescue
