// The latest reading of each device's free memory, as long as it can serve as a base: the calls
// between it and the next reading have taken the bytes by which the free memory is smaller then.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"

namespace cuwarden::tracking {

// Keeps a base for each device with an ordinal from 0 to 63: a reading of its free memory, to which
// a later reading is compared. The difference is what the calls between the two readings took. All
// threads may call the functions at any time.
//
// All bases are forgotten at each recorded call that may change the memory of some device. Calls
// that make or end an implicit object (a stream, a module, an executable graph) are excepted. Some
// changes are not seen: those by other processes, frees in stream order that the device reaches
// later, and tables that the driver makes for itself.
class FreeBases {
 public:
  // Number for the state of a device's base at one moment. If a device's base has the same version
  // at two moments, it was neither forgotten nor replaced in between.
  using Version = std::uint64_t;
  // A device's base: the reading of its free memory to which a later one is compared. If `is_known`
  // is false, there is none, and the other fields but `version` mean nothing.
  struct Base {
    bool is_known = false;
    // True if all calls since the base was read that could take or release memory were measured. A
    // later reading with a different number of free bytes then proves that memory changed without a
    // call of this process.
    bool is_exact = false;
    // False if `free_bytes` are those that the driver called free. True if they are the device's
    // total bytes less those that this process holds, as NVML reports them. Other processes do not
    // change that figure.
    bool by_own = false;
    std::uint64_t free_bytes = 0;
    // Version of the device's base when FreeBases::of() was called. 0: the ordinal is not from 0 to
    // 63, or the lock of the bases could not be had.
    Version version = 0;
  };

  // Returns the device's base, the reading of its free memory to which later readings are compared.
  // Base::is_known is false if the device has none.
  Base of(DeviceOrdinal device) noexcept {
    const Locked locked(lock_);
    if (!locked || !is_kept(device)) return {};
    const Stored& stored = stored_[device.value];
    const std::uint64_t epoch = epoch_.load();
    return {.is_known = stored.epoch == epoch,
            .is_exact = stored.is_exact,
            .by_own = stored.by_own,
            .free_bytes = stored.free_bytes,
            .version = version_of(epoch, stored)};
  }
  // Returns the version of the device's base for set(). To be called before the device is read. 0:
  // the ordinal is not from 0 to 63, or the lock of the bases could not be had; set() then does
  // nothing.
  Version reading_begins(DeviceOrdinal device) noexcept {
    is_watched_.store(true);
    return of(device).version;
  }
  // Makes a reading with these free bytes the device's base, to which later readings are compared.
  // `by_own`: Base::by_own. `begun`: the result of reading_begins(). Does nothing if a base was
  // forgotten since then, or if the device's base was replaced.
  void set(DeviceOrdinal device, std::uint64_t free_bytes, Version begun,
           bool by_own = false) noexcept {
    const Locked locked(lock_);
    if (!locked || !is_kept(device)) return;
    Stored& stored = stored_[device.value];
    const std::uint64_t epoch = epoch_.load();
    if (version_of(epoch, stored) == begun)
      stored = {.free_bytes = free_bytes,
                .epoch = epoch,
                .serial = stored.serial + 1,
                .is_exact = true,
                .by_own = by_own};
  }
  // True if no base was forgotten between the moments of two versions of one device's base. A later
  // reading may have replaced the base. Such a reading was taken while no other thread was inside a
  // call, since otherwise it replaces no base (ImplicitObjects::device_was_read()).
  static bool none_forgotten_between(Version one, Version other) noexcept {
    return one >> serial_bits == other >> serial_bits;
  }
  // Subtracts from the device's base (a reading of its free memory) the bytes that a call has taken
  // and that are entered in the ledger. Adds them if `bytes` is negative (given back). `before`:
  // the version of the device's base before the call. If a base was forgotten since then, the
  // present one may have been read in the middle of the call. All bases are forgotten in that case.
  void took(DeviceOrdinal device, std::int64_t bytes, Version before) noexcept {
    if (bytes == 0) return;
    const Locked locked(lock_);
    if (!locked || !is_kept(device)) return;
    Stored& stored = stored_[device.value];
    if (none_forgotten_between(version_of(epoch_.load(), stored), before))
      stored.free_bytes -= static_cast<std::uint64_t>(bytes);
    else
      memory_may_change();
  }
  // Makes the device's base (a reading of its free memory) inexact (Base::is_exact), because a call
  // that may have taken or given back memory of the device was not measured.
  void was_not_measured(DeviceOrdinal device) noexcept {
    const Locked locked(lock_);
    if (locked && is_kept(device)) stored_[device.value].is_exact = false;
  }
  // Forgets the bases of all devices (readings of free memory, to which later readings are
  // compared). To be called at each call that may change the memory of some device, before the
  // change or after it. Costs one load if there is no base to forget.
  void memory_may_change() noexcept {
    if (!is_watched_.load(std::memory_order_relaxed)) return;
    is_watched_.store(false);
    epoch_.fetch_add(1);
  }

 private:
  // A device's base (a reading of its free memory) as it is kept. It is known while `epoch` is
  // equal to `epoch_`.
  struct Stored {
    std::uint64_t free_bytes = 0, epoch = 0;
    std::uint64_t serial = 0;               // number of times that the device's base was set
    bool is_exact = false, by_own = false;  // see Base::is_exact and Base::by_own
  };
  static constexpr std::uint64_t serial_bits = 24;

  static bool is_kept(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < LiveContexts::device_limit;
  }
  static Version version_of(std::uint64_t epoch, const Stored& stored) noexcept {
    return epoch << serial_bits | stored.serial % (std::uint64_t{1} << serial_bits);
  }

  // Guards `stored_`. Its holder calls neither the driver nor the program, and takes no other lock.
  FutexLock lock_;
  Stored stored_[LiveContexts::device_limit];
  // Number that rises each time that bases (readings of free memory) are forgotten.
  std::atomic<std::uint64_t> epoch_{1};
  // True if a base (a reading of a device's free memory) was set, or a reading begun, since the
  // bases were last forgotten.
  std::atomic<bool> is_watched_{false};
};

}  // namespace cuwarden::tracking
