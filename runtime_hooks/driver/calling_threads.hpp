// The threads that are inside the driver at this moment, as far as they came by a hook: each says
// so in words of its own, which cost it about a nanosecond a call. A thread that leaves a call
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
  static constexpr std::size_t most = 1024;  // threads that have words of their own

  // Changed by its thread alone.
  struct alignas(64) Thread {
    std::atomic<std::uint32_t> calls{0};        // that have not returned
    std::atomic<std::uint32_t> submissions{0};  // of those, what the submission gate knows
    std::atomic<std::int32_t> id{0};            // the kernel's; 0: no thread's
  };

  // The calling thread's words; null where there are too many threads.
  Thread* own() noexcept {
    Thread* const mine = any_own();
    return mine == &nobody_ ? nullptr : mine;
  }
  // Null also before the thread's first call.
  Thread* known() const noexcept { return own_ == &nobody_ ? nullptr : own_; }
  // True once a thread found no words for itself.
  bool are_too_many() const noexcept { return are_too_many_.load(); }

  Thread* enter() noexcept {
    Thread* const mine = any_own();
    if (mine == &nobody_) [[unlikely]] {
      without_words_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    mine->calls.store(mine->calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return mine;
  }
  void leave(Thread* mine) noexcept {
    if (mine == nullptr) [[unlikely]]
      without_words_.fetch_sub(1, std::memory_order_relaxed);
    else
      mine->calls.store(mine->calls.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

  // True if every thread, the calling one included, was seen outside the driver once before the
  // deadline (of the clock). Returns early where a thread cannot come back any more.
  bool are_all_outside(std::uint64_t deadline_ns, Clock& clock = system_clock) noexcept;

  // In a forked child, which has one thread.
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

// True once the driver has answered a call of the program with an error after which a device, or
// what the process has of it, is gone: to ask it again is useless, and may take for ever.
extern constinit std::atomic<bool> device_is_lost;
[[gnu::cold]] void note_failed_call(CUresult) noexcept;

// A call of the driver. Has no destructor: a call that is left without returning from it stays.
class DriverCall {
 public:
  [[gnu::always_inline]] DriverCall() noexcept : thread_(calling_threads.enter()) {}
  DriverCall(const DriverCall&) = delete;
  DriverCall& operator=(const DriverCall&) = delete;

  // Passes on the call's answer.
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
