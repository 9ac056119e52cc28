// The gate at which all work waits that is submitted to a device while memory is moved behind its
// addresses. A submission costs a nanosecond more, and nothing before the gate was armed. Each
// thread says in a word of its own that it is submitting. The thread that closes the gate has the
// kernel order those words against the gate's state, for all threads at once (membarrier).
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"

namespace cuwarden::driver {

// A gate that submissions pass, and that one thread can close for all others.
class SubmissionGate {
 public:
  using Thread = CallingThreads::Thread;

  // `clock` must outlive the object.
  explicit constexpr SubmissionGate(Clock& clock = system_clock) noexcept : clock_(clock) {}

  // Makes submissions count themselves, so that the gate can be closed; to be called before the
  // pool has memory that may be moved. Returns false if the kernel has no membarrier (before Linux
  // 4.14): then the gate cannot be closed.
  bool arm() noexcept;
  bool is_armed() const noexcept { return is_armed_.load(std::memory_order_relaxed); }

  // Closes the gate for all threads but the calling one, and waits until their submissions under
  // way have returned. Returns false, with the gate open, if some have not returned by
  // `deadline_ns` (of the monotonic clock), or if another thread keeps the gate closed. The calling
  // thread gets no signals until it opens the gate, because a handler might never return.
  [[nodiscard]] bool close(std::uint64_t deadline_ns) noexcept;
  // Opens the gate, which the calling thread must have closed, and allows its signals again.
  void open() noexcept;

  // To be called before and after each submission, if the gate is armed. `mine`: the calling
  // thread's words. enter() waits while the gate is closed.
  void enter(Thread& mine) noexcept {
    const std::uint32_t depth = mine.submissions.load(std::memory_order_relaxed);
    mine.submissions.store(depth + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state_.load(std::memory_order_relaxed) != is_open && depth == 0) [[unlikely]]
      wait_until_open(mine);
  }
  static void leave(Thread& mine) noexcept {
    mine.submissions.store(mine.submissions.load(std::memory_order_relaxed) - 1,
                           std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t is_open = 0, is_closed = 1;
  friend class GateClosed;
  void wait_until_open(Thread&) noexcept;
  bool have_all_left(std::uint64_t deadline_ns) noexcept;

  Clock& clock_;
  std::atomic<bool> is_armed_{false};
  std::atomic<std::uint32_t> state_{is_open};
  // 1 while closed, in memory that a forked child finds wiped: the child does not have the thread
  // that would open the gate again. Null before arm().
  std::atomic<std::atomic<std::uint32_t>*> closed_here_{nullptr};
  FutexLock lock_;
  std::uint64_t signals_ = 0;  // that were blocked before
};
extern constinit SubmissionGate submission_gate;

// Closes the gate for the length of a scope; false if that takes longer than `patience_ns`. Arming
// the gate, which the first use does, takes additional time.
class GateClosed {
 public:
  explicit GateClosed(std::uint64_t patience_ns) noexcept
      : is_closed_(submission_gate.arm() &&
                   submission_gate.close(submission_gate.clock_.now_ns() + patience_ns)) {}
  ~GateClosed() {
    if (is_closed_) submission_gate.open();
  }
  GateClosed(const GateClosed&) = delete;
  GateClosed& operator=(const GateClosed&) = delete;
  explicit operator bool() const noexcept { return is_closed_; }

 private:
  bool is_closed_;
};

// Passes the gate for the length of a scope, and counts a call of the driver until returned() is
// called.
class Submission {
 public:
  [[gnu::always_inline]] Submission() noexcept : thread_(calling_threads.enter()) {
    if (submission_gate.is_armed() && thread_ != nullptr) {
      submission_gate.enter(*thread_);
      is_at_gate_ = true;
    }
  }
  [[gnu::always_inline]] ~Submission() {
    if (is_at_gate_) SubmissionGate::leave(*thread_);
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  // Counts the end of the call, and returns its answer.
  [[gnu::always_inline]] CUresult returned(CUresult answer) noexcept {
    calling_threads.leave(thread_);
    if (answer != CUDA_SUCCESS) [[unlikely]]
      note_failed_call(answer);
    return answer;
  }

 private:
  CallingThreads::Thread* const thread_;
  bool is_at_gate_ = false;
};

}  // namespace cuwarden::driver
