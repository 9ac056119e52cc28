// The gate at which threads wait that would submit work to a device while cuwarden moves memory
// behind unchanged addresses. A submission (a launch, a copy, a fill) costs about a nanosecond
// more, and nothing before the gate was armed. Each thread says in a counter of its own that it is
// submitting. The thread that closes the gate has the kernel order those counters against the
// gate's state, for all threads at once (membarrier).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"

namespace cuwarden::driver {

// A gate for calls that submit work to a device (a launch, a copy, a fill), and for some other
// hooked calls: each passes it by a Submission or a GateScope. One thread can close the gate; all
// other threads then wait at it until that thread opens it again.
class SubmissionGate {
 public:
  // counters of one thread: its driver calls and submissions
  using Thread = CallingThreads::Thread;

  // Arms the gate: later submissions (calls that submit work to a device) count themselves, so that
  // the gate can be closed. To be called before the program gets memory of cuwarden's pool that may
  // be moved. Returns true, without doing anything, if the gate is armed already. Returns false if
  // the gate cannot be armed, because the kernel has or allows no membarrier (before Linux 4.14, or
  // by a seccomp filter), or because there is no memory. Keeps errno.
  bool arm() noexcept;
  // True once the gate can be closed, because submissions (calls that submit work to a device)
  // count themselves.
  bool is_armed() const noexcept { return is_armed_.load(std::memory_order_relaxed); }

  // Closes the gate for all threads but the calling one. Waits until their submissions under way
  // (calls that submit work to a device) have returned. If another thread has the gate closed,
  // first waits until that thread opens it. Returns true if the gate is closed; the caller must
  // then call open(). Returns false, with the gate as it was, if `clock` shows `deadline_ns` before
  // that.
  //
  // Returns false at once if the gate is not armed, if the calling thread is itself submitting, or
  // if a thread has no counters (CallingThreads::are_too_many()). While the gate is closed, the
  // calling thread gets no signals except those that its own instructions raise (own_signals),
  // because a handler might never return.
  [[nodiscard]] bool close(std::uint64_t deadline_ns, Clock& clock = system_clock) noexcept;
  // Opens the gate, which the calling thread must have closed by close(), and restores the signal
  // mask that the thread had before close().
  void open() noexcept;

  // Passes the gate: waits while another thread has it closed, and counts a submission (a call that
  // submits work to a device) that begins. To be called before each submission if the gate is
  // armed. `mine`: the calling thread's counters. A thread may submit inside a submission; only the
  // outermost one waits. A thread whose cancellation type is asynchronous may be cancelled while it
  // waits, which unwinds the stack.
  void enter(Thread& mine) {
    const std::uint32_t depth = mine.submissions.load(std::memory_order_relaxed);
    mine.submissions.store(depth + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state_.load(std::memory_order_relaxed) != is_open && depth == 0) [[unlikely]]
      wait_until_open(mine);
  }
  // Counts the end of a submission (a call that submits work to a device). To be called after the
  // submission has returned, once for each call of enter(). `mine`: the calling thread's counters.
  static void leave(Thread& mine) noexcept {
    mine.submissions.store(mine.submissions.load(std::memory_order_relaxed) - 1,
                           std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t is_open = 0, is_closed = 1;  // states of the gate, in state_
  // Waits until the gate is open, and then counts a submission (a call that submits work to a
  // device) in the calling thread's counters. Meanwhile the call of the driver that the thread is
  // about to make does not count. Not noexcept: a cancellation may unwind it.
  void wait_until_open(Thread&);
  // Waits until no other thread is submitting work to a device; threads that have ended do not
  // count. Returns false if `Clock` shows `deadline_ns` first.
  bool have_all_left(std::uint64_t deadline_ns, Clock&) noexcept;

  std::atomic<bool> is_armed_{false};  // true once arm() has prepared the gate for being closed
  // The gate's state, is_open or is_closed; threads that wait at the gate sleep on this word.
  std::atomic<std::uint32_t> state_{is_open};
  // Points to a word that close() sets to 1, and that the kernel sets to 0 in a forked child. The
  // thread that closed the gate does not run in the child. So a thread that reads 0 while it waits
  // opens the gate itself. Null before arm().
  std::atomic<std::atomic<std::uint32_t>*> closed_here_{nullptr};
  FutexLock lock_;  // held by the thread that has closed the submission gate, until it opens it
  // Signals that the thread which closed the gate had blocked before, as a SignalSet. open() blocks
  // exactly these again.
  std::uint64_t signals_ = 0;
};
extern constinit SubmissionGate submission_gate;  // the gate of all submissions of the process

// Keeps other threads from submitting work to devices for the length of a scope. The constructor
// arms `submission_gate` if it is not armed yet, and closes it. The object converts to true if the
// gate is closed, and to false if arm() or close() has failed. The destructor opens the gate again.
class GateClosed {
 public:
  // Arms the gate if it is not armed yet, and closes it. `patience_ns`: longest time in nanoseconds
  // for which close() waits; the time that arm() takes does not count. `Clock`: measures the wait.
  GateClosed(std::uint64_t patience_ns, Clock& clock) noexcept
      : is_closed_(submission_gate.arm() &&
                   submission_gate.close(clock.now_ns() + patience_ns, clock)) {}
  ~GateClosed() {
    if (is_closed_) submission_gate.open();
  }
  GateClosed(const GateClosed&) = delete;
  GateClosed& operator=(const GateClosed&) = delete;
  explicit operator bool() const noexcept { return is_closed_; }  // true if the gate is closed

 private:
  bool is_closed_;  // true if this object has closed `submission_gate`
};

// A call of the driver that submits work to a device. The constructor waits while another thread
// has closed `submission_gate`. A thread that wants to close the gate waits for the destructor.
// CallingThreads counts the call until the caller has passed the driver's result to returned(). The
// destructor does not end that count. So a call that is left by a longjmp stays counted.
class Submission {
 public:
  // Counts the calling thread as inside the driver, until returned(). If the submission gate is
  // armed, waits while another thread has it closed, and counts a submission, until the destructor.
  // Inside another submission of the same thread, does not wait. Ignores the gate if the thread has
  // no counters of its own.
  [[gnu::always_inline]] Submission() : thread_(calling_threads.enter()) {
    if (submission_gate.is_armed() && thread_ != nullptr) {
      submission_gate.enter(*thread_);
      is_at_gate_ = true;
    }
  }
  // Counts the end of the submission at the gate, if the constructor counted its beginning.
  [[gnu::always_inline]] ~Submission() {
    if (is_at_gate_) SubmissionGate::leave(*thread_);
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

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
  // True if the constructor has counted a submission at the gate; the destructor then counts its
  // end.
  bool is_at_gate_ = false;
};

}  // namespace cuwarden::driver
