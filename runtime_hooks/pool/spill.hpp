// Serves a request that the device has no room for: device memory as far as there is some, and host
// memory for the rest, behind one range of addresses. Kernels and copies notice only the speed: the
// host's part is read over the bus.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/host_process.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/device_access.hpp"
#include "runtime_hooks/pool/ranges.hpp"

namespace cuwarden::pool {

// The limits of spilling.
struct SpillSettings {
  // The most host memory that ranges may use together; 0 turns spilling off.
  std::uint64_t most_host_bytes = 0;
  // Bytes by which each device is to seem larger, in total and (less those in use) in free memory;
  // 0: devices seem as large as they are.
  std::uint64_t visible_bytes = 0;
};

// Reasons for which a request is not spilled.
enum class SpillFailure : std::uint8_t {
  not_needed,      // The device has room for the request by now.
  too_small,       // The driver cuts requests of this size from a slab.
  cap_reached,     // SpillSettings::most_host_bytes would be exceeded.
  host_is_full,    // The host has no room for it.
  not_supported,   // The device cannot map host memory.
  driver_refused,  // The driver refused memory, addresses or access for another reason.
};

// All functions may be called by several threads at once.
class Spill {
 public:
  // `peers` and `process` outlive the object.
  Spill(const SpillSettings& settings, const Peers& peers, HostProcess& process) noexcept
      : settings_(settings), peers_(peers), process_(process) {}
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  bool enabled() const noexcept { return settings_.most_host_bytes != 0; }
  // The largest request that the driver serves with part of a slab (measured). Such requests are
  // not spilled: a page for each would be a waste.
  static constexpr std::uint64_t largest_shared_bytes = std::uint64_t{1} << 20;
  // Returns the free bytes that the program is told of a device with `free` free bytes.
  std::uint64_t visible_free_bytes(std::uint64_t free) const noexcept;
  // Returns SpillSettings::visible_bytes, by which each device seems larger.
  std::uint64_t visible_bytes() const noexcept { return settings_.visible_bytes; }
  // Ranges that the program holds.
  Ranges& ranges() noexcept { return ranges_; }

  // Makes memory for the request that `asked_for` describes (bytes, device, context, kind); its
  // context must be the current one. If that fails, returns none, writes the reason to the last
  // argument and has changed nothing. May throw std::bad_alloc, and has changed nothing then.
  std::optional<Range> allocate(const driver::RealDriver&, const Range& asked_for,
                                SpillFailure& failure);
  // Gives back the memory of a range that was taken out of ranges(). The device must not use it any
  // more.
  void give_back(const driver::RealDriver&, const Range&) noexcept;

  // Puts back a range that was taken out of ranges(), as if it had not been.
  void put_back(const driver::RealDriver&, const Range&) noexcept;
  // Keeps a range that the program has freed but that the device may still use. take_deferred()
  // takes out a range for which the given context is the next to be waited for, or none. That is
  // first Range::used_in, then the range's own context.
  void defer(const Range&) noexcept;
  std::optional<Range> take_deferred(ContextId) noexcept;
  bool has_deferred() const noexcept { return deferred_.any(); }
  // Gives back all ranges of a context that has ended. Calls gone(range) for each that the program
  // had not freed.
  template <class Gone>
  void context_ended(const driver::RealDriver& real, ContextId context, const Gone& gone) noexcept {
    while (const auto range = ranges_.take_of(context)) {
      give_back(real, *range);
      gone(*range);
    }
    while (const auto range = deferred_.take_of(context)) give_back(real, *range);
    while (auto range = deferred_.take_used_in(context)) {
      range->used_in = {};
      defer(*range);
    }
  }
  // Changes the access of `peer` to all ranges of the device, after Peers was changed. Returns the
  // last error.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal device, DeviceOrdinal peer,
                         bool may) noexcept;

 private:
  // Counts host memory that is about to be made, against the setting and against the host's room.
  // If either is exceeded, returns false and writes the reason to the last argument.
  bool reserve_host(std::uint64_t bytes, SpillFailure& failure) noexcept;
  // Grants access to the range and enters it in ranges(). Returns false if the driver refuses.
  bool insert_and_grant(const driver::RealDriver&, const Range&);
  static CUresult add_piece(const driver::RealDriver&, Range&, CUmemAllocationProp&,
                            std::uint64_t bytes) noexcept;
  static void fill_from_device(const driver::RealDriver&, Range&, std::uint64_t wanted) noexcept;
  void undo(const driver::RealDriver&, const Range&, std::uint64_t reserved_bytes) noexcept;

  const SpillSettings settings_;
  const Peers& peers_;
  HostProcess& process_;
  // Bytes of host memory that ranges use, and those of them that are not yet allocated, so that the
  // host's own figures do not include them.
  std::atomic<std::uint64_t> host_bytes_{0}, coming_bytes_{0};
  Ranges ranges_, deferred_;
};

}  // namespace cuwarden::pool
