// A rung: one of the ordered attempts to serve a refused request. A rescue: the attempts of all
// rungs for one refused request.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/settings/settings.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/core/vain_waits.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/rescue/rungs/earlier_failures.hpp"
#include "runtime_hooks/rescue/rungs/parts.hpp"
#include "runtime_hooks/rescue/rungs/pending_frees.hpp"
#include "runtime_hooks/rescue/rungs/reclaimers.hpp"
#include "runtime_hooks/rescue/rungs/request.hpp"
#include "runtime_hooks/rescue/rungs/rescue_conditions.hpp"
#include "runtime_hooks/rescue/rungs/tried_rungs.hpp"

namespace cuwarden::rescue {

// Outcome of a rescue: whether the rungs have served the refused request.
struct Rescued {
  bool served = false;  // true if the request was served
  // Device address of the memory if cuwarden has served the request with host memory behind the
  // address. 0: the driver has served the request and written the address itself, or the request
  // was not served.
  std::uint64_t address = 0;
};

// A refused request, and the objects that help to serve it. Lives on the stack of the requesting
// thread.
struct RefusedCall {
  const Parts& parts;  // the ledger, cuwarden's pools and other objects that rungs use
  // The streams in which memory was freed (cuMemFreeAsync) and that were not synchronised since.
  // This memory cannot serve other requests yet.
  PendingFrees& pending;
  const tracking::Caller& caller;  // the program's call of CUDA, with its stack
  // The request, as the hook of the called CUDA function understands it.
  const tracking::Allocation& asked_for;
  // The requesting thread's current context, and that context's device.
  tracking::CurrentContext here;
  const Request request;  // size, device, function and kind of the request
  // The driver's error at the refusal. When a rung asks the driver again, this error counts as a
  // lack of memory, as OUT_OF_MEMORY does.
  CUresult refusal = CUDA_ERROR_OUT_OF_MEMORY;
  // Bytes that the driver gave back to make room before it refused the request; 0: none.
  std::uint64_t given_back_bytes = 0;
  // Repeats the program's call of the driver, and returns the driver's result. May be called any
  // number of times.
  FunctionRef<CUresult()> ask_driver;
};

// A rung: one of the ordered attempts to serve a refused request.
struct Rung;

// Outcomes of the attempts that one rescue has made so far. They tell if the rescue is over, and if
// rungs are worth trying for the next refused request.
struct AttemptOutcomes {
  // The outcome of the last attempt, whatever the rung. Without meaning before the first attempt,
  // which the retry rung always makes.
  RungOutcome last{};
  // The outcome of the last attempt by a rung that cannot fail for a lasting reason
  // (Rung::obstacles_last is false). Without meaning before the first attempt.
  RungOutcome last_that_counts{};
  // True if the outcome of any attempt so far was `timed_out`, or `unsafe`. Attempts by rungs that
  // may fail for a lasting reason (Rung::obstacles_last) do not count.
  bool timed_out = false, unsafe = false;

  // True once the rescue is over: the request was served, or has failed with an error other than a
  // lack of memory.
  bool has_ended() const noexcept {
    return last == RungOutcome::served || last == RungOutcome::other_error;
  }
};

// The state of one rescue: a refused request while rungs are tried for it.
struct Rescue {
  const RefusedCall& call;  // the refused request, and the objects that serve it
  // Facts about the process and the device, by which rungs decide if they run.
  const RescueConditions& conditions;
  const Settings& settings;  // the user's choices: rungs that may be tried, and their time limits
  // The registered functions of the program that empty caches. Null: none can be registered.
  Reclaimers* reclaimers;
  // The last failures of rescues and waits on the request's device. The rungs that wait store in
  // this object when a wait in vain has ended.
  EarlierFailures& earlier;
  Clock& clock;       // measures waits and the durations of rungs
  TriedRungs& tried;  // collects reports about the rungs that are tried
  // True if the requesting thread is confined by a seccomp filter of the program. Only rungs that
  // suit such threads run then (Rung::suits_confined_threads).
  bool is_confined = false;

  // True if the last wait for other processes' memory on this device ended without memory, a short
  // time before this rescue began: less than ten times the longest wait (Settings::wait_ns).
  bool earlier_wait_was_vain = was_in_vain(earlier.waited_ns, settings.wait_ns);
  // True if this rescue has left something out because of stream captures in progress: streams with
  // pending frees, meshing, or a question to the driver.
  bool has_left_out = false;
  // Device address of the memory if cuwarden has served the request with host memory behind the
  // address; otherwise 0.
  std::uint64_t served_at = 0;
  // Outcomes of the attempts that were made so far.
  AttemptOutcomes outcomes{};

  // Makes an attempt of the rung by calling `run`, which returns the outcome. Adds the attempt to
  // `tried`, before it begins and when it has ended, and its outcome to `outcomes`. `reclaimer`:
  // name of the reclaimer (a function that empties a cache) that `run` calls; empty for other
  // attempts.
  void attempt(const Rung&, FunctionRef<RungOutcome()> run, std::string_view reclaimer = {});
  // Asks the driver for the requested memory once more. `served`: the driver has granted the
  // request. `no_memory`, `other_error`: the driver has refused the request for lack of memory, or
  // with another error. `unsafe`: the driver was not asked, because that might end a stream capture
  // that is in progress.
  RungOutcome ask() {
    // A thread whose own mode is RELAXED ends no capture by a request for memory. Other calls may
    // end one: work in the legacy default stream does.
    const driver::RelaxedCaptures relaxed(call.parts.real);
    tracking::Captures& captures = call.parts.captures;
    const bool may_end_captures = call.request.asked != ledger::Asked::memory;
    if (may_end_captures ? !captures.begin_wait() : !relaxed && captures.any()) {
      has_left_out = true;
      return RungOutcome::unsafe;
    }
    const CUresult answer = call.ask_driver();
    if (may_end_captures) captures.end_wait();
    if (answer == CUDA_SUCCESS) return RungOutcome::served;
    return answer == CUDA_ERROR_OUT_OF_MEMORY || answer == call.refusal ? RungOutcome::no_memory
                                                                        : RungOutcome::other_error;
  }
  // True if the request is for device memory, false for host memory.
  bool is_on_device() const { return call.request.device != no_device; }
  // Returns true if the last wait of some kind was in vain and ended less than ten times
  // `longest_ns` ago. The wait is not repeated then, since nothing is likely to have changed.
  // `until_ns`: time of `clock` at which that wait ended; 0: it was not in vain, or there was none.
  // `longest_ns`: longest time that such a wait takes, in nanoseconds.
  bool was_in_vain(const std::atomic<std::uint64_t>& until_ns, std::uint64_t longest_ns) const {
    const std::uint64_t until = until_ns.load(std::memory_order_relaxed);
    return until != 0 && (clock.now_ns() - until) / vain_times < longest_ns;
  }
};

// A rung: an attempt, or several attempts of one kind, to serve a refused request. If the driver
// answers an attempt with an error other than a lack of memory, the rescue ends. The program then
// gets the error of its original call, a lack of memory.
struct Rung {
  ledger::Rung name;  // the rung's name in ledger and report
  // Returns the reason why the rung is left out in this rescue; LeftOut::none if it is to be tried.
  // The pointer is never null.
  LeftOut (*obstacle)(Rescue&);
  // Makes the attempt, and asks the driver again if it may have made room. Returns `served` if the
  // request was granted. Null for a rung that has `run_each`.
  RungOutcome (*run)(Rescue&) = nullptr;
  // Makes several attempts by Rescue::attempt(), until the rescue has ended or nothing is left to
  // try. Null for a rung that has `run`.
  void (*run_each)(Rescue&) = nullptr;
  // True if the rung may fail for a reason that never goes away. A failure of the rung is then no
  // reason to try rungs again soon.
  bool obstacles_last = false;
  // True if the rung needs no thread, time or system call that the program itself may never make.
  bool suits_confined_threads = false;
};

// The obstacle of rungs that can do nothing for host memory: returns LeftOut::host_memory if the
// request is for host memory, otherwise LeftOut::none.
inline LeftOut unless_on_device(Rescue& rescue) {
  return rescue.is_on_device() ? LeftOut::none : LeftOut::host_memory;
}

// Waits until the device has reached stream-ordered frees that are not synchronised yet, makes
// their memory available, and asks the driver again. Waits until `deadline_ns` of the rescue's
// clock at most. `timed_out`: the deadline has come first. `nothing_to_do`: there were no such
// frees. `no_memory`: their memory was not enough. `served`, `other_error`: the driver has granted
// the request, or refused it with another error. `unsafe`: streams with such frees were left out
// because of captures in progress, and the others' memory was not enough.
RungOutcome settle_pending_frees(Rescue&, std::uint64_t deadline_ns);

}  // namespace cuwarden::rescue
