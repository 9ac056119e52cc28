// Spilling: a request that is larger than the device's free memory gets device memory as far as
// there is some, and host memory for the rest, behind one range of addresses. Kernels and copies
// work as before, but reach the host's part over the bus, which is slower.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/pool/device_access.hpp"
#include "runtime_hooks/pool/ranges.hpp"
#include "runtime_hooks/pool/spill_limits.hpp"

namespace cuwarden::pool {

// The reason for which a request is not served with host memory.
enum class SpillFailure : std::uint8_t {
  not_needed,      // The device has room for the request by now.
  too_small,       // The request has 1 MiB or less, for which the driver uses part of a slab.
  cap_reached,     // SpillSettings::most_host_bytes would be exceeded.
  host_is_full,    // The host's free memory does not suffice.
  not_supported,   // The device or the driver cannot map host memory.
  driver_refused,  // The driver refused memory, addresses or access.
};

// Serves requests for device memory with device and host memory together. Each request gets a
// single range of addresses, with both behind it. All functions may be called by several threads at
// once.
class Spill {
 public:
  // `peers` (the devices that may use each other's memory) and `process` (which tells the host's
  // free memory) outlive the object.
  Spill(const SpillSettings& settings, const Peers& peers, HostProcess& process) noexcept
      : settings_(settings), peers_(peers), process_(process) {}

  // True if the settings allow host memory for spilling.
  bool enabled() const noexcept { return settings_.most_host_bytes != 0; }
  // Bytes of the largest request that the driver serves with a part of a slab (measured). Up to
  // this size, requests are not spilled: each would take a whole page of 2 MiB.
  static constexpr std::uint64_t largest_shared_bytes = std::uint64_t{1} << 20;
  // Returns the free bytes that cuMemGetInfo is to report to the program for a device that has
  // `free` free bytes, if visible_bytes() is not 0. SpillSettings::visible_bytes are added, less
  // the host memory in use for spilling. 64 MiB are subtracted, because spilling leaves so much of
  // the device free.
  std::uint64_t visible_free_bytes(std::uint64_t free) const noexcept;
  // Returns the bytes by which cuMemGetInfo is to report each device's memory larger than it is; 0
  // if the driver's answers stay as they are.
  std::uint64_t visible_bytes() const noexcept { return settings_.visible_bytes; }
  // Returns the set of spilled allocations that the program has not freed.
  Ranges& ranges() noexcept { return ranges_; }

  // Makes memory for a request, and enters it in ranges(). `asked_for` holds the request in
  // `bytes`, `device`, `context`, `kind` and `memory_pool`; the current context must be one of the
  // device. If the request is not served, returns none and writes the reason to `failure`, which
  // has no meaning otherwise. May throw std::bad_alloc, and has made no memory then.
  std::optional<Range> allocate(const driver::RealDriver&, const Range& asked_for,
                                SpillFailure& failure);
  // Unmaps the memory of a spilled allocation and frees its addresses. The caller must have taken
  // the range out of ranges(), and the device must not use it any more.
  void give_back(const driver::RealDriver&, const Range&) noexcept;

  // Enters a spilled allocation in ranges() again. The caller had taken the range out to free it,
  // and the free has failed. Enters it even if the driver refuses access to it. If the range cannot
  // be entered, it stays mapped until the process ends.
  void put_back(const driver::RealDriver&, const Range&) noexcept;
  // Keeps a spilled allocation that the program has freed, because the device may still use it.
  // take_deferred() returns it later. If host memory is lacking, or another thread has kept the
  // list's lock for more than ten seconds, the range stays mapped until the process ends.
  void defer(const Range&) noexcept;
  // Removes and returns one range that defer() has kept and that has to wait for this context next.
  // A range waits for Range::used_in first, and for Range::context where `used_in` is 0. Returns
  // none if no kept range has to wait for this context next.
  std::optional<Range> take_deferred(ContextId) noexcept;
  // True if memory of spilled allocations is kept that the program has freed, because the device
  // may still use it.
  bool has_deferred() const noexcept { return deferred_.any(); }
  // Gives back the memory of all ranges that were allocated in `context`, which has ended. Calls
  // gone(range) for each range that the program had not freed. A freed range of another context
  // does not have to wait for `context` any more.
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
  // Lets the device `peer` use all spilled allocations of `device` that the program has not freed,
  // or forbids it (`may` false). The caller must have changed the constructor's Peers before, which
  // decides about allocations that are spilled later. Returns the driver's last error; CUDA_SUCCESS
  // if there was none.
  CUresult change_access(const driver::RealDriver&, DeviceOrdinal device, DeviceOrdinal peer,
                         bool may) noexcept;

 private:
  // Counts `bytes` of host memory as used; must be called before they are allocated. Returns false,
  // with nothing counted, if SpillSettings::most_host_bytes would be exceeded or the host has too
  // little free memory. In that case, writes the reason to `failure`.
  bool reserve_host(std::uint64_t bytes, SpillFailure& failure) noexcept;
  // Lets the device and its peers use the range, and enters the range in ranges(). Returns false,
  // with nothing entered, if the driver refuses or another thread has kept the lock of ranges() for
  // more than ten seconds.
  bool insert_and_grant(const driver::RealDriver&, const Range&);
  // Maps `bytes` (a multiple of 2 MiB) of new physical memory right after the memory that the range
  // has. `CUmemAllocationProp`: the memory's properties; the flag for GPUDirect RDMA is cleared if
  // the driver refuses memory with it. Returns the driver's result; CUDA_ERROR_OUT_OF_MEMORY if the
  // range has Range::most_pieces mappings already.
  static CUresult add_piece(const driver::RealDriver&, Range&, CUmemAllocationProp&,
                            std::uint64_t bytes) noexcept;
  // Maps up to `wanted` bytes of device memory at the start of the range, which has no memory yet.
  // Range::mapped_bytes then tells how much was mapped.
  static void fill_from_device(const driver::RealDriver&, Range&, std::uint64_t wanted) noexcept;
  // Unmaps the range's memory, and frees its addresses, which were reserved for `reserved_bytes` of
  // memory. Subtracts Range::host_bytes from `host_bytes_`.
  void undo(const driver::RealDriver&, const Range&, std::uint64_t reserved_bytes) noexcept;

  const SpillSettings settings_;
  const Peers& peers_;
  HostProcess& process_;
  // `host_bytes_`: bytes of host memory that are allocated or reserved for spilling.
  // `coming_bytes_`: those of them that are not allocated yet, so that the host still reports them
  // as free.
  std::atomic<std::uint64_t> host_bytes_{0}, coming_bytes_{0};
  // Ranges that the program holds, and ranges that it has freed but the device may still use.
  Ranges ranges_, deferred_;
};

}  // namespace cuwarden::pool
