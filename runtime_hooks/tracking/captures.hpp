// Stream captures that are in progress, as far as it was seen. A capture ends by its stream's
// cuStreamEndCapture, with the stream, or with the context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::tracking {

class Captures {
 public:
  // Notes that a capture of the stream is about to begin; to be called before the driver's call.
  // `per_thread`: true if a null stream means the thread's own default stream. Returns true if the
  // capture was not known before: then ended() must be called if the driver does not begin it.
  bool begins(CUstream, bool per_thread, ContextId) noexcept;
  // Notes that the stream's capture has ended.
  void ended(CUstream, bool per_thread) noexcept;
  // Notes that the stream ends, and its capture with it.
  void stream_ends(CUstream) noexcept;
  // Notes that the context ends, and all captures of its streams.
  void context_ends(ContextId) noexcept;

  // True if a capture that is known has not ended.
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr std::size_t limit = 64;
  struct Capture {
    std::uint64_t key = 0;  // 0: none
    ContextId context;
  };
  void remove(Capture&) noexcept;

  FutexLock lock_;
  std::atomic<std::uint32_t> count_{0};  // of those below, and of those that found no room
  std::uint32_t without_room_ = 0;
  Capture all_[limit];
};

}  // namespace cuwarden::tracking
