#include "runtime_hooks/pool/spill.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::pool {
namespace {

// Bytes of mapped host memory for each byte of page tables that the device needs for them: 8 bytes
// for 4 KiB (measured).
constexpr std::uint64_t host_bytes_of_a_table_byte = 512;
// The most pieces of a range that are device memory. Each is smaller than the last one that was
// refused.
constexpr std::uint32_t most_device_pieces = Range::most_pieces - 8;

std::uint64_t free_on_device(const driver::RealDriver& real) {
  std::size_t free = 0, total = 0;
  return real.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? free : 0;
}

}  // namespace

std::uint64_t Spill::visible_free_bytes(std::uint64_t free) const noexcept {
  const std::uint64_t used = host_bytes_.load(relaxed);
  return free - std::min(free, left_to_device_bytes) + settings_.visible_bytes -
         std::min(used, settings_.visible_bytes);
}

// If two threads ask at once, one may be refused although it alone would have been served.
bool Spill::reserve_host(std::uint64_t bytes, SpillFailure& failure) noexcept {
  std::uint64_t used = host_bytes_.load(relaxed);
  do {
    if (used > settings_.most_host_bytes || bytes > settings_.most_host_bytes - used) {
      failure = SpillFailure::cap_reached;
      return false;
    }
  } while (!host_bytes_.compare_exchange_weak(used, used + bytes, relaxed));
  const std::uint64_t coming = coming_bytes_.fetch_add(bytes) + bytes;
  if (coming <= host_memory_for_spilling(process_)) return true;
  coming_bytes_.fetch_sub(bytes);
  host_bytes_.fetch_sub(bytes, relaxed);
  failure = SpillFailure::host_is_full;
  return false;
}

// Maps new physical memory at the end of what the range has.
CUresult Spill::add_piece(const driver::RealDriver& real, Range& range, CUmemAllocationProp& where,
                          std::uint64_t bytes) noexcept {
  if (range.piece_count == Range::most_pieces) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult made = map_new(real, range.start + range.mapped_bytes, bytes, where);
  if (made != CUDA_SUCCESS) return made;
  range.piece_bytes[range.piece_count++] = bytes;
  range.mapped_bytes += bytes;
  return CUDA_SUCCESS;
}

// Maps up to `left` bytes of device memory at the start of the range, in pieces that get smaller
// where the driver refuses.
void Spill::fill_from_device(const driver::RealDriver& real, Range& range,
                             std::uint64_t left) noexcept {
  CUmemAllocationProp device = on_device(real, range.device);
  for (std::uint64_t bytes = left; bytes != 0 && range.piece_count < most_device_pieces;) {
    const CUresult added = add_piece(real, range, device, bytes);
    if (added == CUDA_SUCCESS)
      left -= bytes;
    else if (added == CUDA_ERROR_OUT_OF_MEMORY)
      bytes = down_to_page(bytes / 2);
    else
      return;
    bytes = std::min(bytes, left);
  }
}

// Peers may change before the range can be found in ranges(); such changes are applied afterwards.
bool Spill::insert_and_grant(const driver::RealDriver& real, const Range& range) {
  const std::uint64_t peers = peers_.of(range.device);
  if (Peers::grant(real, range.start, range.mapped_bytes, range.device, peers) != CUDA_SUCCESS)
    return false;
  if (!ranges_.insert(range)) return false;
  const std::uint64_t now = peers_.of(range.device);
  for (std::size_t peer = 0; peer < Peers::most_devices; ++peer)
    if (((now ^ peers) >> peer & 1) != 0)
      Peers::change(real, range.start, range.mapped_bytes,
                    DeviceOrdinal{static_cast<std::int32_t>(peer)}, (now >> peer & 1) != 0);
  return true;
}

std::optional<Range> Spill::allocate(const driver::RealDriver& real, const Range& asked_for,
                                     SpillFailure& failure) {
  const std::uint64_t bytes = asked_for.bytes, wanted = up_to_page(bytes);
  const DeviceOrdinal device = asked_for.device;
  const auto refuse = [&](SpillFailure why) {
    failure = why;
    return std::nullopt;
  };
  if (bytes <= largest_shared_bytes) return refuse(SpillFailure::too_small);
  if (wanted < bytes) return refuse(SpillFailure::cap_reached);
  if (device.value < 0 || !can_map(real)) return refuse(SpillFailure::not_supported);
  auto host = on_host_of(real, device);
  if (!host) return refuse(SpillFailure::not_supported);

  // Everything that may be refused is checked first, so that device memory is not taken from others
  // in vain.
  const std::uint64_t free = free_on_device(real);
  if (free >= wanted + left_to_device_bytes) return refuse(SpillFailure::not_needed);
  const std::uint64_t free_for_pages = free - std::min(free, left_to_device_bytes);
  const std::uint64_t tables =
      down_to_page((wanted - std::min(wanted, free_for_pages)) / host_bytes_of_a_table_byte);
  const std::uint64_t of_device =
      std::min(wanted, down_to_page(free_for_pages - std::min(free_for_pages, tables)));
  std::uint64_t reserved = wanted - of_device;
  if (!reserve_host(reserved, failure)) return std::nullopt;

  failure = SpillFailure::driver_refused;
  Range range = asked_for;
  CUdeviceptr start = 0;
  const bool has_addresses =
      real.cuMemAddressReserve(&start, whole_addresses(wanted), 0, 0, 0) == CUDA_SUCCESS;
  range.start = start;
  if (has_addresses) fill_from_device(real, range, of_device);
  // Another process may have taken device memory meanwhile: more host memory is needed then.
  const std::uint64_t host_bytes = wanted - range.mapped_bytes;
  bool made = has_addresses;
  if (made && host_bytes > reserved) {
    made = reserve_host(host_bytes - reserved, failure);
    if (made) reserved = host_bytes;
  }
  made = made && (host_bytes == 0 || add_piece(real, range, *host, host_bytes) == CUDA_SUCCESS);
  range.host_bytes = made ? host_bytes : 0;
  coming_bytes_.fetch_sub(reserved);
  host_bytes_.fetch_sub(reserved - range.host_bytes, relaxed);
  try {
    if (made && insert_and_grant(real, range)) return range;
  } catch (...) {
    undo(real, range, wanted);
    throw;
  }
  if (has_addresses) undo(real, range, wanted);
  return std::nullopt;
}

void Spill::undo(const driver::RealDriver& real, const Range& range,
                 std::uint64_t reserved_bytes) noexcept {
  std::uint64_t at = range.start;
  for (std::uint32_t i = 0; i < range.piece_count; ++i) {
    real.cuMemUnmap(at, range.piece_bytes[i]);
    at += range.piece_bytes[i];
  }
  real.cuMemAddressFree(range.start, whole_addresses(reserved_bytes));
  host_bytes_.fetch_sub(range.host_bytes, relaxed);
}

void Spill::give_back(const driver::RealDriver& real, const Range& range) noexcept {
  undo(real, range, range.mapped_bytes);
}

void Spill::put_back(const driver::RealDriver& real, const Range& range) noexcept {
  try {
    // The range is listed even if the driver refuses the access, so that a later free finds it.
    if (!insert_and_grant(real, range)) ranges_.insert(range);
  } catch (...) {
    // There is no host memory to list the range: it stays mapped until the process ends.
  }
}

void Spill::defer(const Range& range) noexcept {
  try {
    deferred_.insert(range);
  } catch (...) {
  }
}

std::optional<Range> Spill::take_deferred(ContextId context) noexcept {
  return deferred_.take_used_in(context);
}

CUresult Spill::change_access(const driver::RealDriver& real, DeviceOrdinal device,
                              DeviceOrdinal peer, bool may) noexcept {
  CUresult result = CUDA_SUCCESS;
  ranges_.each([&](const Range& range) {
    if (range.device != device) return;
    const CUresult set = Peers::change(real, range.start, range.mapped_bytes, peer, may);
    if (set != CUDA_SUCCESS) result = set;
  });
  return result;
}

}  // namespace cuwarden::pool
