// The right to write a report, which one thread at a time has. A thread loses it if it ends, or if
// a jump (longjmp) out of a signal handler leaves its writing.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"

namespace cuwarden::shim {

// Gives the turn to write a report to one thread at a time. Any thread may call the functions, also
// in a signal handler. A thread takes the turn inside a hooked call or an OwnWork (a scope of
// cuwarden's own work). Their CallCanary, which lies on the stack, tells other threads if the
// thread has left its writing by a jump.
class WritingTurn {
 public:
  // The results of take(). `taken`: the calling thread has got the turn. `taken_over`: the calling
  // thread has got the turn of a thread that ended or jumped away, and whose report is unfinished.
  // `interrupted`: a signal handler has interrupted the calling thread, which already has the turn.
  // `not_given`: another thread has kept the turn for the whole wait.
  enum class Answer { taken, taken_over, interrupted, not_given };

  // `clock`: tells the time in take(), and does its waiting. It must outlive the object.
  explicit constexpr WritingTurn(Clock& clock) noexcept : clock_(clock) {}

  // Waits up to `longest_ns` nanoseconds for the turn. After `taken` and `taken_over` the calling
  // thread must call give_back(). If the calling thread already has the turn, returns at once:
  // `taken_over` if a jump (longjmp) has left its earlier writing, `interrupted` if a signal
  // handler runs within the writing. To be called inside a hooked call or an OwnWork (a scope of
  // cuwarden's own work).
  Answer take(std::uint64_t longest_ns) noexcept;
  // Ends the calling thread's turn to write, and wakes threads that wait in take().
  void give_back() noexcept;

  // True if no thread has the turn to write.
  bool is_free() const noexcept { return writer_.load() == 0; }
  // True if the calling thread has the turn to write.
  bool is_callers() const noexcept;
  // True if no thread has the turn to write, or if the thread with the turn has ended.
  bool is_free_or_ended() const noexcept;

  // Takes the turn away from the thread that has it, if one has. To be called in a forked child,
  // which has none of its parent's threads.
  void reset() noexcept;

 private:
  // Returns true if the thread `writer` (its id in the kernel), which has the turn, will not give
  // it back any more: it has ended, or a jump has left its writing. `is_callers_lost`: the answer
  // for the case that `writer` is the calling thread.
  bool is_lost(std::uint32_t writer, bool is_callers_lost) const noexcept;

  Clock& clock_;  // tells the time in take(), and does its waiting
  // Kernel's id of the thread that has the turn to write; 0 if no thread has it.
  std::atomic<std::uint32_t> writer_{0};
  // Canary on the stack of the thread `writer_`: that of the hooked call or OwnWork in which the
  // thread took the turn. If the canary is damaged, the thread has left its writing by a longjmp.
  // Null if no thread has the turn to write, or while a thread is taking it.
  std::atomic<const hooks::CallCanary*> canary_{nullptr};
};

}  // namespace cuwarden::shim
