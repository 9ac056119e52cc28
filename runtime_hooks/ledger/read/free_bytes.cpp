#include "runtime_hooks/ledger/read/free_bytes.hpp"

#include <algorithm>

#include "runtime_hooks/core/kind.hpp"

namespace cuwarden::ledger {
namespace {

// Returns the present value of the sum that Device::allocated_when_read_bytes has of the moment of
// the last reading.
std::uint64_t allocated_on(const DeviceView& device, const std::vector<SeriesView>& all) {
  std::uint64_t allocated = 0;
  for (const SeriesView& series : all)
    if (series.device == device.ordinal && is_taken_at_once(series.kind))
      allocated += series.live_bytes + series.beside_live_bytes;
  const std::uint64_t spilled =
      device.spilled_bytes - std::min(device.spilled_bytes, device.spilled_in_stream_order_bytes);
  return allocated - std::min(allocated, spilled) + device.arena.unused_bytes();
}

}  // namespace

// The last reading of a process that ends by itself comes after its allocations. Frees in
// destructors, which come later, do not give back all of their bytes.
std::uint64_t free_bytes_now(const DeviceView& device, const std::vector<SeriesView>& all) {
  if (!device.allocated_when_read_bytes || !device.implicit_when_read_bytes)
    return device.free_bytes;
  std::uint64_t before = *device.implicit_when_read_bytes, now = device.implicit.all();
  // Figures of cuwarden's pool are of another moment than the reading.
  if (device.at == ReadingAt::last_call && device.arena.held_bytes == 0) {
    before += *device.allocated_when_read_bytes;
    now += allocated_on(device, all);
  }
  const std::uint64_t change = std::max(now, before) - std::min(now, before);
  // A damaged ledger may tell any number.
  if (change > device.total_bytes) return device.free_bytes;
  return now >= before ? device.free_bytes - std::min(device.free_bytes, change)
                       : std::min(device.total_bytes, device.free_bytes + change);
}

}  // namespace cuwarden::ledger
