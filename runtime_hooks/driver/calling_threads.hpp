// The threads that are inside the driver at this moment, if they came by a hook. Each thread counts
// its calls in words of its own, which costs about a nanosecond a call. A thread that leaves a call
// without returning from it, by a jump or by its end, counts as inside for ever: it may have left
// with a lock of the driver's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::driver {

class CallingThreads {
 public:
  static constexpr std::size_t most = 1024;  // greatest number of threads with words of their own

  // The words of one thread, which only that thread changes.
  struct alignas(64) Thread {
    std::atomic<std::uint32_t> calls{0};        // hooked calls that have not returned
    std::atomic<std::uint32_t> submissions{0};  // those of them that passed the submission gate
    std::atomic<std::int32_t> id{0};  // the kernel's thread id; 0: no thread has these words
  };

  // Returns the calling thread's words; null if there are too many threads.
  Thread* own() noexcept {
    Thread* const mine = any_own();
    return mine == &nobody_ ? nullptr : mine;
  }
  // As own(), but null also before the thread's first call.
  Thread* known() const noexcept { return own_ == &nobody_ ? nullptr : own_; }
  // True once a thread got no words, because all were taken.
  bool are_too_many() const noexcept { return are_too_many_.load(); }

  // Counts a call that begins. Returns the calling thread's words; null if it has none.
  Thread* enter() noexcept {
    Thread* const mine = any_own();
    if (mine == &nobody_) [[unlikely]] {
      without_words_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    mine->calls.store(mine->calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return mine;
  }
  // Counts the end of a call. `mine`: the result of enter().
  void leave(Thread* mine) noexcept {
    if (mine == nullptr) [[unlikely]]
      without_words_.fetch_sub(1, std::memory_order_relaxed);
    else
      mine->calls.store(mine->calls.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

  // Waits until each thread, the calling one included, was seen outside the driver once. Returns
  // false at `deadline_ns` of the clock, or as soon as a thread that is inside cannot come back any
  // more.
  bool are_all_outside(std::uint64_t deadline_ns, Clock& clock = system_clock) noexcept;

  // Forgets all other threads; to be called in a forked child.
  void forked() noexcept;

  template <class Visit>
  bool all_of(const Visit& visit) noexcept {
    for (Thread& thread : threads_)
      if (!visit(thread)) return false;
    return true;
  }

 private:
  Thread* any_own() noexcept { return own_ != nullptr ? own_ : take_row(); }
  Thread* take_row() noexcept;

  [[gnu::tls_model("initial-exec")]] static constinit thread_local Thread* own_;
  std::atomic<std::uint32_t> without_words_{0};  // calls of threads without words
  std::atomic<bool> are_too_many_{false};
  std::atomic<bool> was_left_{false};  // a thread ended inside the driver
  std::atomic<std::uint32_t> next_{0};
  Thread nobody_;  // of all threads that found no words
  Thread threads_[most];
};
extern constinit CallingThreads calling_threads;

// True once a call of the program got an error that says that a device, or the process's access to
// it, is lost. The driver is not asked any more then: it may never answer.
extern constinit std::atomic<bool> device_is_lost;
[[gnu::cold]] void note_failed_call(CUresult) noexcept;

// Counts a call of the driver in CallingThreads. Has no destructor: a call that is left by a jump
// stays counted.
class DriverCall {
 public:
  [[gnu::always_inline]] DriverCall() noexcept : thread_(calling_threads.enter()) {}
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;

  // Counts the end of the call, and returns its answer.
  [[gnu::always_inline]] CUresult returned(CUresult answer) noexcept {
    calling_threads.leave(thread_);
    if (answer != CUDA_SUCCESS) [[unlikely]]
      note_failed_call(answer);
    return answer;
  }

 private:
  CallingThreads::Thread* const thread_;
};

}  // namespace cuwarden::driver
