// The threads that are inside the CUDA driver at this moment, in calls that hooks forwarded. Each
// thread counts its calls in counters of its own, which costs about a nanosecond a call. A thread
// that leaves a call without returning from it, by a longjmp or by its end, counts as inside for
// ever: it may have left with a lock of the driver held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::driver {

// Counts, for each thread of the process, the calls of the CUDA driver that have not returned.
class CallingThreads {
 public:
  // Thread::id of counters that a thread of the process had which forked this one.
  static constexpr std::int32_t of_parent = -1;
  // Most threads that can have counters of their own at a time, for their calls of the driver.
  // Further threads share one common counter.
  static constexpr std::size_t most = 1024;

  // One thread's counters of its calls of the driver. Only that thread changes them as long as it
  // runs.
  struct alignas(64) Thread {
    // Number of the thread's hooked calls of the driver that have not returned.
    std::atomic<std::uint32_t> calls{0};
    // Number of times that the thread has passed the submission gate and has not left it yet.
    // cuwarden closes that gate (SubmissionGate) while it moves memory. A thread passes the gate in
    // calls that submit work to a device, and in some other hooked calls (GateScope). Passing
    // counts only once the gate is armed. In the thread that has closed the gate, closing counts as
    // 1.
    std::atomic<std::uint32_t> submissions{0};
    // The kernel's id of the thread that has these counters, or had them until it ended; 0: no
    // thread had them yet. `of_parent`: a thread of the process that forked this one had them.
    std::atomic<std::int32_t> id{0};
    // True if submissions of the thread that has these counters need not pass the submission gate:
    // before all_pass_gate(). False if no thread has had them yet.
    std::atomic<bool> is_free_to_submit{false};
  };

  // Returns the calling thread's counters if it has some and its submissions need not pass the
  // submission gate. Otherwise returns null, and the class Submission does all that is needed. The
  // answer lies in the cache line that counts the call, so that a short call reads few lines.
  [[gnu::always_inline]] Thread* free_to_submit() const noexcept {
    Thread* const mine = own_;
    if (mine == nullptr || !mine->is_free_to_submit.load(std::memory_order_relaxed)) return nullptr;
    return mine;
  }
  // Makes free_to_submit() return null from now on, in all threads. Submissions that have begun are
  // not waited for.
  void all_pass_gate() noexcept;

  // Returns the calling thread's counters of its calls of the driver. The first call of own() or
  // enter() assigns them to the thread. Returns null if other threads have all counters, or if the
  // thread is confined by a seccomp filter.
  Thread* own() noexcept {
    Thread* const mine = any_own();
    return mine == &stand_in_ ? nullptr : mine;
  }
  // Returns the calling thread's counters of its calls of the driver; null if neither own() nor
  // enter() has assigned any to the thread.
  Thread* known() const noexcept { return own_ == &stand_in_ ? nullptr : own_; }
  // True once some thread has got no counters of its own, because all were taken or a seccomp
  // filter confined the thread.
  bool are_too_many() const noexcept { return are_too_many_.load(); }

  // Counts a call of the driver that begins. Returns the calling thread's counters, for leave();
  // null if the thread has none and counts in a common counter.
  Thread* enter() noexcept {
    Thread* const mine = any_own();
    if (mine == &stand_in_) [[unlikely]] {
      common_calls_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    enter(*mine);
    return mine;
  }
  // Counts a call of the driver that begins. `mine`: the calling thread's counters.
  [[gnu::always_inline]] static void enter(Thread& mine) noexcept {
    mine.calls.store(mine.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Counts the end of a call of the driver. `mine`: the result of enter() at the call's beginning.
  [[gnu::always_inline]] void leave(Thread* mine) noexcept {
    if (mine == nullptr) [[unlikely]] {
      leave_common();
    } else {
      // In a forked child, forked() may have set the counter to 0 during the call.
      const std::uint32_t calls = mine->calls.load(std::memory_order_relaxed);
      mine->calls.store(calls - (calls != 0 ? 1 : 0), std::memory_order_release);
    }
  }

  // Waits until each thread of the process has been seen outside the driver once, not necessarily
  // all at one time, and returns true. Returns false if some thread stays inside until `clock`
  // shows `deadline_ns`. Returns false at once if the calling thread itself is inside the driver
  // and has counters of its own; without them, only at the deadline. Stops waiting and returns
  // false if a thread has ended inside a call.
  bool are_all_outside(std::uint64_t deadline_ns, Clock& clock = system_clock) noexcept;

  // Forgets the parent's threads. Threads of this process keep their counters. The common counter,
  // of threads that have none of their own, becomes 0. Clears device_is_lost. To be called in a
  // forked child.
  void forked() noexcept;

  // Calls visit(thread) once for each Thread, which is the set of counters of one thread; also for
  // sets that no thread uses now. Threads without a set of their own are left out. Stops and
  // returns false as soon as visit() returns false; otherwise returns true.
  template <class Visit>
  bool all_of(const Visit& visit) noexcept {
    for (Thread& thread : threads_)
      if (!visit(thread)) return false;
    return true;
  }

 private:
  // Returns the calling thread's counters, which are assigned to it if needed; `stand_in_` if the
  // thread can have none of its own.
  Thread* any_own() noexcept { return own_ != nullptr ? own_ : take_row(); }
  // Assigns a row of `threads_` that no living thread uses to the calling thread, as its counters,
  // and returns the row. Returns `stand_in_` if there is none, or if the thread is confined.
  Thread* take_row() noexcept;

  // Counts the end of a call in the common counter. Does nothing if the counter is 0.
  void leave_common() noexcept;

  // The calling thread's counters; null before they are assigned to the thread, `stand_in_` if it
  // can have none of its own.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local Thread* own_;
  // Number of driver calls under way in all threads that have no counters of their own.
  std::atomic<std::uint32_t> common_calls_{0};
  std::atomic<bool> are_too_many_{false};  // true once a thread got no counters of its own
  // True once a thread was found to have ended inside a call of the driver. That call stays
  // counted.
  std::atomic<bool> was_left_{false};
  // True once all_pass_gate() was called. Threads that get counters later are not free to submit.
  std::atomic<bool> all_pass_gate_{false};
  // Index in threads_ at which the next search for unused counters begins.
  std::atomic<std::uint32_t> next_{0};
  // A mark: own_ points to it in threads that have no counters of their own. Its counters stay 0,
  // because calls of these threads are counted in `common_calls_`.
  Thread stand_in_;
  Thread threads_[most];  // the counters of all threads; unused ones have Thread::id 0
};
// Counts the hooked calls of the CUDA driver that are under way, for all threads of the process.
extern constinit CallingThreads calling_threads;

// True once a call of the program got an error which says that a device is lost, or that all
// further CUDA work of the process will fail. cuwarden then asks the driver nothing at the end of
// the process, because the driver may never answer. False again in a forked child.
extern constinit std::atomic<bool> device_is_lost;
// Sets device_is_lost if the driver's error says that a device is lost, or that all further CUDA
// work of the process will fail, too.
[[gnu::cold]] void note_failed_call(CUresult) noexcept;

// A call of the driver that is under way. `calling_threads` counts the calling thread as inside the
// driver from the construction until returned(), which the caller must call with the driver's
// result. There is no destructor: a call that is left by a longjmp stays counted.
class DriverCall {
 public:
  // Counts the calling thread as inside the driver, until returned() is called.
  [[gnu::always_inline]] DriverCall() noexcept : thread_(calling_threads.enter()) {}
  // Counts the calling thread as inside the driver, until returned() is called. `mine`: the calling
  // thread's counters.
  [[gnu::always_inline]] explicit DriverCall(CallingThreads::Thread& mine) noexcept
      : thread_(&mine) {
    CallingThreads::enter(mine);
  }
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;

  // To be called once, when the driver has returned `answer`. The thread then no longer counts as
  // inside the driver. If `answer` says that a device is lost, sets device_is_lost. Returns
  // `answer`.
  [[gnu::always_inline]] CUresult returned(CUresult answer) noexcept {
    calling_threads.leave(thread_);
    if (answer != CUDA_SUCCESS) [[unlikely]]
      note_failed_call(answer);
    return answer;
  }

 private:
  // The calling thread's counters; null if the thread has none of its own.
  CallingThreads::Thread* const thread_;
};

}  // namespace cuwarden::driver
