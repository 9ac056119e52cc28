// The contexts of this process that are known to be alive, because their making was seen and their
// end was not. Only such a one may be pushed into the driver: it does not check a handle well.
//
// A green context is a way to use a part of a device; what is allocated while one is current
// belongs to the device's primary context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::tracking {

class LiveContexts {
 public:
  static constexpr std::int32_t device_limit = 64;

  // Note contexts that the driver made: a device's primary context, or one that the program
  // created.
  void primary_retained(DeviceOrdinal, ContextId) noexcept;
  // the primary context; 0 if none was seen, or if it has ended
  ContextId primary_of(DeviceOrdinal) const noexcept;

  void created(DeviceOrdinal, ContextId) noexcept;
  // Notes that a context of any kind has ended.
  void ended(ContextId) noexcept;
  // Returns a context that the program created on this device, other than `not_this`; 0: none.
  ContextId created_on(DeviceOrdinal, ContextId not_this = {}) const noexcept;
  // True if fits(context) is true for all live contexts. False also if there were too many contexts
  // to know them all.
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
  // Returns no_device where the context is not known.
  DeviceOrdinal device_of(ContextId) const noexcept;

  // Note a green context (`green`: CUgreenCtx), and the context by which the program uses it.
  void green_created(std::uint64_t green, DeviceOrdinal) noexcept;
  void green_used_as(std::uint64_t green, ContextId) noexcept;
  // Returns the green context's device; no_device where it was not known.
  DeviceOrdinal green_destroyed(std::uint64_t green) noexcept;
  // Returns the context that owns memory which is allocated while this one is current.
  ContextId owner(ContextId current) const noexcept;
  // Returns true for a green context whose primary context was not seen.
  bool is_green_without_primary(ContextId current) const noexcept;

 private:
  // A full table leaves contexts out: no exit reading by such a context, no owner for a green one.
  static constexpr std::size_t limit = 64;
  static constexpr std::uint64_t being_filled = 1;  // the key of such a row
  struct Created {
    std::atomic<std::uint64_t> context{0};  // 0: free
    std::atomic<std::int32_t> device{-1};
  };
  struct Green {
    std::atomic<std::uint64_t> green{0};  // 0: free
    std::atomic<std::uint64_t> context{0};
    std::atomic<std::int32_t> device{-1};
  };

  std::atomic<std::uint64_t> primary_[device_limit]{};
  Created created_[limit];
  Green greens_[limit];
  std::atomic<bool> green_seen_{false};
  std::atomic<bool> is_full_{false};
};

}  // namespace cuwarden::tracking
