// The contexts of this process that are known to be alive: hooks saw them being made, and did not
// see them end. Only such a context is made current by cuwarden, because the driver hardly checks
// handles.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::tracking {

// The contexts of this process that are known to be alive: hooks saw them being made, and did not
// see them end. Only such a context is made current by cuwarden (cuCtxPushCurrent), because the
// driver hardly checks handles.
//
// A green context (CUgreenCtx) gives access to a part of a device. Memory that is allocated while
// one is current belongs to the device's primary context. All functions may be called by several
// threads at once.
class LiveContexts {
 public:
  // Primary contexts of devices with this ordinal or a higher one are not recorded.
  static constexpr std::int32_t device_limit = 64;

  // Records the device's primary context, which the program, its CUDA runtime or a green context
  // has retained. The record replaces that of an earlier primary context. Ignores ordinals outside
  // [0, device_limit).
  void primary_retained(DeviceOrdinal, ContextId) noexcept;
  // Returns the device's primary context; 0 if none was recorded or it has ended.
  ContextId primary_of(DeviceOrdinal) const noexcept;

  // Records a context that the program has created on the device. If 64 are recorded already, the
  // context is left out, and all_of() is false from then on.
  void created(DeviceOrdinal, ContextId) noexcept;
  // Removes the context, primary or created, because it has ended.
  void ended(ContextId) noexcept;
  // Notes that a context has ended; to be called before the records of its memory are ended.
  void records_end(ContextId) noexcept;
  // Returns how often records_end() was called so far.
  std::uint32_t ends() const noexcept { return ends_.load(); }
  // Returns true if records_end() was called for the context since ends() had the result `ends`. A
  // record of the context that was added meanwhile may then have been missed. If more than 16
  // contexts have ended since, the result may be false all the same.
  bool has_ended_since(std::uint32_t ends, ContextId) const noexcept;
  // Returns one of the live contexts that the program has created on this device (cuCtxCreate),
  // other than `not_this` (0: any of them); 0 if there is none.
  ContextId created_on(DeviceOrdinal, ContextId not_this = {}) const noexcept;
  // True if fits(context) is true for all live contexts, primary ones and those that the program
  // created. Always false once the program has had more than 64 created contexts at a time, since
  // not all of them are recorded.
  template <class Fits>
  bool all_of(const Fits& fits) const noexcept {
    if (is_full_.load(std::memory_order_relaxed)) return false;
    for (const auto& primary : primary_)
      if (const std::uint64_t context = primary.load(std::memory_order_acquire);
          context != 0 && !fits(ContextId{context}))
        return false;
    for (const Created& row : created_)
      if (const std::uint64_t context = row.context.load(std::memory_order_acquire);
          context > being_filled && !fits(ContextId{context}))
        return false;
    return true;
  }
  // Returns the device of a primary or created context; no_device if the context is not recorded.
  DeviceOrdinal device_of(ContextId) const noexcept;

  // Records a green context (`green` is its CUgreenCtx) that the program has created on the device.
  // Returns false if 64 are recorded already; the green context is then left out.
  bool green_created(std::uint64_t green, DeviceOrdinal) noexcept;
  // Returns the device of a green context; no_device if it is not recorded.
  DeviceOrdinal device_of_green(std::uint64_t green) const noexcept;
  // Records the ordinary context by which the program uses the green context `green`
  // (cuCtxFromGreenCtx). Does nothing if `green` is not recorded.
  void green_used_as(std::uint64_t green, ContextId) noexcept;
  // Removes the green context, and returns its device; no_device if it was not recorded.
  DeviceOrdinal green_destroyed(std::uint64_t green) noexcept;
  // Returns the context that owns memory which is allocated while `current` is the current context:
  // the device's primary context if `current` belongs to a green context and the primary one is
  // recorded, otherwise `current`.
  ContextId owner(ContextId current) const noexcept;
  // True if `current` belongs to a green context and the primary context of its device is not
  // recorded.
  bool is_green_without_primary(ContextId current) const noexcept;

 private:
  // Most created contexts, and most green contexts, that are recorded. The device of a further
  // context may get no reading at the end of the process. Memory in a further green context is
  // recorded for that context instead of the primary one.
  static constexpr std::size_t limit = 64;
  // Value of the handle in a row that a thread is just filling in. No context's handle has this
  // value.
  static constexpr std::uint64_t being_filled = 1;
  // A context that the program created; `context` is 0 in an unused row.
  struct Created {
    std::atomic<std::uint64_t> context{0};
    std::atomic<std::int32_t> device{-1};
  };
  // A green context and the ordinary context by which the program uses it (0 if it does not).
  // `green` is 0 in an unused row.
  struct Green {
    std::atomic<std::uint64_t> green{0};
    std::atomic<std::uint64_t> context{0};
    std::atomic<std::int32_t> device{-1};
  };

  // Each device's primary context; 0 if there is none.
  std::atomic<std::uint64_t> primary_[device_limit]{};
  Created created_[limit];
  Green greens_[limit];
  // Number of calls of records_end(), and the contexts of the last of them: that of call `i` is at
  // the index `i` modulo the array's size.
  std::atomic<std::uint32_t> ends_{0};
  std::array<std::atomic<std::uint64_t>, 16> last_ends_{};
  FutexLock ends_lock_;  // held while a call of records_end() is noted
  // True once the program has made an ordinary context for a green one (cuCtxFromGreenCtx).
  std::atomic<bool> green_seen_{false};
  // True once the program has created a context for which there was no unused row in `created_`.
  std::atomic<bool> is_full_{false};
};

}  // namespace cuwarden::tracking
