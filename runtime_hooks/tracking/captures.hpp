// The stream captures of this process that are in progress, as far as hooks saw them begin.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::tracking {

// The stream captures of this process that are in progress, as far as hooks saw them begin. While
// rescues are off (Refusals::rescues()), hooks call begins() for none. A capture ends by its
// stream's cuStreamEndCapture, or when the stream or the context is destroyed. All functions may be
// called by several threads at once.
class Captures {
 public:
  // `clock`: measures waits for calls between begin_wait() and end_wait(), and sleeps during them.
  explicit Captures(Clock& clock = system_clock) noexcept : clock_(clock) {}

  // Counts a capture of the stream as in progress; must be called before the driver begins it.
  // `per_thread` is true if a null stream means the calling thread's own default stream.
  // `ContextId` is the current context, and `CUstreamCaptureMode` the capture's mode. Waits, for a
  // millisecond at most, until no thread is between begin_wait() and end_wait(). Returns true if
  // the capture was counted; if the driver then refuses to begin it, the caller must call ended().
  // Returns false, with nothing changed, if the stream is captured already. Does the same if the
  // stream is null and means the legacy default stream, in which the driver begins no capture.
  // Returns false, too, if the object's lock cannot be had; the capture then counts as in progress
  // for ever. In all cases the caller goes on to the driver.
  bool begins(CUstream, bool per_thread, ContextId, CUstreamCaptureMode) noexcept;
  // Removes the stream's capture from those in progress, because it has ended or did not begin.
  // `per_thread` is true if a null stream means the calling thread's own default stream. Does
  // nothing if no capture that may be the stream's is counted, or if the object's lock cannot be
  // had.
  void ended(CUstream, bool per_thread) noexcept;
  // Removes the stream's capture, if there is one, from those in progress, because the stream is
  // being destroyed. Does nothing for default streams, or if the capture is beyond the 64 whose
  // streams are remembered. Does nothing, too, if the object's lock cannot be had.
  void stream_ends(CUstream) noexcept;
  // Removes all captures that began while the context was current from those in progress, because
  // the context has ended. Leaves captures beyond the 64 whose streams are remembered. Removes none
  // if the object's lock cannot be had.
  void context_ends(ContextId) noexcept;

  // True if a capture is in progress in the process, as far as begins() was called for it. Costs a
  // single load.
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

  // To be called before a call that would end captures (cuCtxSynchronize). Returns true if no
  // capture is in progress: the caller then makes the call, and calls end_wait() after it. A
  // capture that begins meanwhile waits for end_wait(), but for a millisecond at most: by then the
  // call has passed the driver's check for captures. Returns false if a capture is in progress: the
  // call must not be made.
  bool begin_wait() noexcept {
    waits_.fetch_add(1);
    if (!any()) return true;
    waits_.fetch_sub(1);
    return false;
  }
  // To be called after the call for which begin_wait() has returned true.
  void end_wait() noexcept { waits_.fetch_sub(1); }

  // True if a capture in progress forbids the calling thread to allocate memory: the driver would
  // refuse, and end the capture. `mode`: the calling thread's own capture mode
  // (cuThreadExchangeStreamCaptureMode). With RELAXED, no capture forbids allocations. With
  // THREAD_LOCAL, the captures that the thread began do, unless a capture's own mode is RELAXED.
  // With GLOBAL, GLOBAL captures of other threads do, too. A capture in progress whose mode and
  // thread are not remembered forbids allocations unless `mode` is RELAXED. So does any capture in
  // progress if the object's lock cannot be had.
  bool forbid_allocations(CUstreamCaptureMode mode) noexcept;

  // Makes seen() true from now on. Must be called after the driver has begun a stream capture, also
  // if begins() was not called for the capture.
  void began() noexcept { seen_.store(true, std::memory_order_relaxed); }
  // True once the driver has begun a stream capture in this process. From then on, hooks ask the
  // driver if a stream is being captured. Programs that never capture are not slowed down.
  bool seen() const noexcept { return seen_.load(std::memory_order_relaxed); }

 private:
  // Largest number of captures whose streams are remembered at a time. Further captures are only
  // counted.
  static constexpr std::size_t limit = 64;
  // A capture in progress.
  struct Capture {
    // The captured stream: its handle, or for a thread's own default stream the address of the
    // thread's control block, with the highest bit set. 0 marks an unused entry.
    std::uint64_t key = 0;
    // The context that was current when the capture began.
    ContextId context;
    // The thread that began the capture, by the address of its control block.
    std::uint64_t thread = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  };
  // Waits until no call of another thread is between begin_wait() and end_wait(), for a millisecond
  // at most. Such a call passes the driver's check for captures within microseconds.
  void let_waits_begin() const noexcept;
  // Removes a capture that is in progress, by making its entry of `all_` unused.
  void remove(Capture&) noexcept;

  Clock& clock_;  // measures waits for calls between begin_wait() and end_wait()
  // True once the driver has begun a stream capture in this process.
  std::atomic<bool> seen_{false};
  FutexLock lock_;
  // Number of captures in progress, remembered or only counted.
  std::atomic<std::uint32_t> count_{0};
  // Number of calls between begin_wait() and end_wait().
  std::atomic<std::uint32_t> waits_{0};
  // Number of captures in progress whose streams are not remembered, because all 64 entries of
  // `all_` were in use.
  std::uint32_t without_room_ = 0;
  // Number of captures that count as in progress for ever, because `lock_` could not be had.
  std::atomic<std::uint32_t> unremembered_{0};
  Capture all_[limit];
};

}  // namespace cuwarden::tracking
