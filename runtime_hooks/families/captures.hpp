// Stream captures that are in progress, as far as it was seen. A capture ends by its stream's
// cuStreamEndCapture, with the stream, or with the context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"

namespace cuwarden::families {

class Captures {
 public:
  // Before the driver begins it. `per_thread`: null is the thread's own default stream.
  void begins(CUstream, bool per_thread, ContextId) noexcept;
  // It was not begun after all, or has ended.
  void ended(CUstream, bool per_thread) noexcept;
  void stream_ends(CUstream stream) noexcept { ended(stream, false); }
  void context_ends(ContextId) noexcept;  // 0: whichever it is

  // True also where one may be that was not noted.
  bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr std::size_t places = 64;
  struct Place {
    std::atomic<std::uint64_t> key{0};  // 0: free
    std::atomic<std::uint64_t> context{0};
  };
  void free_place(Place&, std::uint64_t key) noexcept;

  // Of places that are taken, and of captures that found none, which stay for ever.
  std::atomic<std::uint32_t> count_{0};
  Place places_[places];
};

}  // namespace cuwarden::families
