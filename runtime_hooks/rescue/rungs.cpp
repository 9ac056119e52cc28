#include "runtime_hooks/rescue/rungs.hpp"

#include <algorithm>

#include "runtime_hooks/core/clock.hpp"

namespace cuwarden::rescue {
namespace {

RungOutcome ask(const Attempt& attempt) {
  if (attempt.is_captured()) return RungOutcome::unsafe;
  switch (attempt.request()) {
    case CUDA_SUCCESS:
      return RungOutcome::served;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return RungOutcome::no_memory;
    default:
      return RungOutcome::other_error;
  }
}

}  // namespace

RungOutcome retry(const Attempt& attempt) { return ask(attempt); }

RungOutcome synchronise(const Attempt& attempt, std::uint64_t deadline_ns) {
  constexpr std::uint64_t first_sleep_ns = 20'000, longest_sleep_ns = 1'000'000;
  PendingFrees::Marks marks(attempt.pending, attempt.real, attempt.context, attempt.may_enter);
  bool had_any = marks.any(), has_others = false;
  for (std::uint64_t sleep = first_sleep_ns;;) {
    if (marks.synchronise_reached()) {
      if (const RungOutcome answer = ask(attempt); answer != RungOutcome::no_memory) return answer;
    }
    // Others are not touched where that was enough.
    if (!has_others) {
      has_others = true;
      if (marks.add_others()) {
        had_any = true;
        continue;
      }
    }
    if (!marks.any()) return had_any ? RungOutcome::no_memory : RungOutcome::nothing_to_do;
    if (now_ns() >= deadline_ns) return RungOutcome::timed_out;
    sleep_ns(sleep);
    sleep = std::min(2 * sleep, longest_sleep_ns);
  }
}

RungOutcome trim(const Attempt& attempt) {
  return attempt.trim() ? ask(attempt) : RungOutcome::nothing_to_do;
}

RungOutcome empty_pool(const Attempt& attempt) {
  const auto given = attempt.empty_pool();
  if (!given) return RungOutcome::unsafe;
  return *given ? ask(attempt) : RungOutcome::nothing_to_do;
}

RungOutcome mesh(const Attempt& attempt) {
  const RungOutcome meshed = attempt.mesh();
  return meshed == RungOutcome::served ? ask(attempt) : meshed;
}

RungOutcome reclaim(const Attempt& attempt, Reclaimers& all, std::size_t place,
                    const Reclaimers::Entry& entry, std::uint64_t deadline_ns,
                    std::optional<Reclaimers::Trouble>& trouble) {
  using Answer = Reclaimers::Answer;
  using Trouble = Reclaimers::Trouble;
  if (attempt.is_unsafe_to_reclaim(entry.modules)) return RungOutcome::unsafe;
  const Reclaimers::Wanted wanted{&attempt.real, attempt.context, attempt.device, attempt.bytes,
                                  deadline_ns};
  for (;;) {
    std::size_t given_back = 0;
    const Answer answer = all.call(place, entry.id, wanted, given_back);
    // It may have given back something, whatever became of it; and others in the meantime.
    RungOutcome asked = ask(attempt);
    // Maybe in a stream.
    if (asked == RungOutcome::no_memory && attempt.device >= 0) {
      const RungOutcome settled = synchronise(attempt, deadline_ns);
      if (settled == RungOutcome::served || settled == RungOutcome::other_error) asked = settled;
    }
    if (asked != RungOutcome::no_memory) return asked;
    switch (answer) {
      case Answer::of_another:  // it was made for something else
        continue;
      case Answer::returned:
        if (given_back == 0) trouble = Trouble::gave_nothing;
        return given_back == 0 ? RungOutcome::nothing_to_do : RungOutcome::no_memory;
      case Answer::timed_out:
        trouble = Trouble::does_not_return;
        return RungOutcome::timed_out;
      case Answer::threw:
        trouble = Trouble::threw;
        return RungOutcome::failed;
      case Answer::no_thread:
        trouble = Trouble::no_thread;
        return RungOutcome::failed;
      case Answer::gone:
        return RungOutcome::nothing_to_do;
    }
  }
}

RungOutcome wait(const Attempt& attempt, std::uint64_t deadline_ns, FunctionRef<void()> goes_on) {
  constexpr std::uint64_t first_sleep_ns = 5'000'000, longest_sleep_ns = 200'000'000;
  constexpr std::uint64_t pending_ns = 2'000'000;  // an event in an idle stream comes so soon
  for (std::uint64_t sleep = first_sleep_ns;; sleep = std::min(2 * sleep, longest_sleep_ns)) {
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) return RungOutcome::timed_out;
    sleep_ns(std::min(sleep, deadline_ns - now));
    // What this process freed meanwhile may pend as well.
    RungOutcome answer = attempt.device >= 0 ? synchronise(attempt, now_ns() + pending_ns)
                                             : RungOutcome::nothing_to_do;
    // Else that has asked already.
    if (answer == RungOutcome::nothing_to_do || answer == RungOutcome::timed_out)
      answer = ask(attempt);
    if (answer != RungOutcome::no_memory) return answer;
    goes_on();
  }
}

}  // namespace cuwarden::rescue
