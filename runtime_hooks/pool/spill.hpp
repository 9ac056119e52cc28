// Memory for a request that the device has no room for: what there is of the device, and the host's
// for the rest, behind one range of addresses. Kernels and copies do not see the difference, but
// for the speed: the host's part is read over the bus.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/device_access.hpp"
#include "runtime_hooks/pool/ranges.hpp"

namespace cuwarden::pool {

struct SpillSettings {
  std::uint64_t most_host_bytes = 0;  // 0: never
  // What the host could give without harm; null: whatever is asked for.
  std::uint64_t (*host_room)() noexcept = nullptr;
  // Each device is to seem so much larger, less what is in use; 0: as large as it is.
  std::uint64_t visible_bytes = 0;
};

enum class SpillTrouble : std::uint8_t {
  not_needed,      // the device has room by now
  too_small,       // the driver cuts it from a page that it shares
  cap_reached,     // most_host_bytes
  host_is_full,    // the host has no room for it
  not_supported,   // the device cannot map the host's memory
  driver_refused,  // for another reason
};

class Spill {
 public:
  Spill(const SpillSettings& settings, const Peers& peers) noexcept
      : settings_(settings), peers_(peers) {}
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  bool enabled() const noexcept { return settings_.most_host_bytes != 0; }
  // Up to this the driver hands out parts of pages (measured): a page for each would be a waste,
  // and no piece of a slab.
  static constexpr std::uint64_t largest_shared_bytes = std::uint64_t{1} << 20;
  // What a device of which so much is free is to say of itself.
  std::uint64_t visible_free_bytes(std::uint64_t free) const noexcept;
  std::uint64_t visible_bytes() const noexcept { return settings_.visible_bytes; }
  Ranges& ranges() noexcept { return ranges_; }

  // What `asked_for` says, of which there is no memory yet; its context is the current one. None:
  // `trouble` says why, and nothing has changed. May throw std::bad_alloc, likewise.
  std::optional<Range> allocate(const driver::RealDriver&, const Range& asked_for,
                                SpillTrouble& trouble);
  // Gives a range back that was taken out of ranges(). The device must not use it any more.
  void give_back(const driver::RealDriver&, const Range&) noexcept;

  // As if take() had not been called.
  void put_back(const driver::RealDriver&, const Range&) noexcept;
  // Freed by the program, and not to be given back yet: kept, and taken out again one by one, after
  // this context was waited for. Where that was one that used it, its own is the next.
  void defer(const Range&) noexcept;
  std::optional<Range> take_deferred(ContextId) noexcept;
  bool has_deferred() const noexcept { return deferred_.any(); }
  // The context has ended; what it held in ranges goes. Calls gone(range) for each.
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
  // After the peers of this device were changed.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal device, DeviceOrdinal peer,
                         bool may) noexcept;

 private:
  // Host memory that is about to be made: counted against the setting and the host from now on.
  bool reserve_host(std::uint64_t bytes, SpillTrouble& trouble) noexcept;
  bool insert_and_grant(const driver::RealDriver&, const Range&);
  static CUresult add_piece(const driver::RealDriver&, Range&, CUmemAllocationProp&,
                            std::uint64_t bytes) noexcept;
  static void fill_from_device(const driver::RealDriver&, Range&, std::uint64_t wanted) noexcept;
  void undo(const driver::RealDriver&, const Range&, std::uint64_t reserved_bytes) noexcept;

  const SpillSettings settings_;
  const Peers& peers_;
  // That ranges hold; and, of those, that the host does not know of yet.
  std::atomic<std::uint64_t> host_bytes_{0}, coming_bytes_{0};
  Ranges ranges_, deferred_;
};

}  // namespace cuwarden::pool
