// Requests of the calling thread that were refused since one was served. Allocators that empty
// their own cache ask again from another line, and more than once.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/rescue/request.hpp"

namespace cuwarden::rescue {

// The last request of the calling thread that was refused. `recorder`: number of the recording,
// because a forked child inherits the thread's memory but has a recording of its own. Times are the
// ledger's.
class LastRefused {
 public:
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
  // Returns true where the thread was refused before this time and was served nothing since. The
  // earlier request may have asked for more.
  bool was_refused_before(std::uint32_t recorder, const Request& request,
                          IncidentId now) const noexcept {
    if (recorder_ != recorder || request_.device != request.device || was_served_other_)
      return false;
    for (const Count& count : counts_)
      if (count.times > (count.incident == now ? 1u : 0u)) return true;
    return had_larger_;
  }
  // To be called after the ladder served the last refused request. Calls visit(incident, times) for
  // the refusals before it, from which the program recovered by itself.
  template <class Visit>
  void rescued(std::uint32_t recorder, IncidentId now, const Visit& visit) noexcept {
    for (const Count& count : counts_) {
      const std::uint32_t times = count.times - (count.incident == now && count.times > 0 ? 1 : 0);
      if (recorder_ == recorder && count.incident.value != 0 && times > 0)
        visit(count.incident, times);
    }
    *this = {};
  }
  // Notes that the refusal is counted with another incident from now on.
  void moved(IncidentId from, IncidentId to) noexcept {
    for (Count& count : counts_) {
      if (count.incident != from) continue;
      if (--count.times == 0) count = {};
      break;
    }
    count(to);
  }
  // Sets the time at which the program gets the refusal.
  void refused_at(std::uint64_t now_ns) noexcept { time_ns_ = now_ns; }
  // To be called after a request was served. Calls visit(incident, times) if an equal request had
  // been refused before.
  template <class Visit>
  void served(std::uint32_t recorder, const Request& request, std::uint64_t now_ns,
              const Visit& visit) noexcept {
    if (counts_[0].incident.value == 0 || recorder_ != recorder) return;
    // The program has gone on: a later refusal is another attempt.
    was_served_other_ = was_served_other_ || request_ != request;
    if (request_ != request) return;
    if (!is_over(now_ns))
      for (const Count& count : counts_)
        if (count.incident.value != 0) visit(count.incident, count.times);
    *this = {};
  }

 private:
  // A later request is another attempt, and may have other reasons to succeed.
  static constexpr std::uint64_t soon_ns = 10'000'000'000;
  bool is_over(std::uint64_t now_ns) const noexcept { return now_ns > time_ns_ + soon_ns; }

  struct Count {
    IncidentId incident;  // 0: none
    std::uint32_t times = 0;
  };
  void count(IncidentId incident) noexcept {
    for (Count& count : counts_) {
      if (count.incident.value != 0 && count.incident != incident) continue;
      count.incident = incident;
      ++count.times;
      return;
    }
  }
  Request request_;
  std::uint32_t recorder_ = 0;
  bool was_served_other_ = false;
  bool had_larger_ = false;  // a larger request was refused right before
  std::uint64_t time_ns_ = 0;
  Count counts_[3];
};

}  // namespace cuwarden::rescue
