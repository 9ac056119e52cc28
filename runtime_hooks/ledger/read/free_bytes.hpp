// Estimates the free bytes of a device now, by its last reading and what has changed since.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime_hooks/ledger/read/views.hpp"

namespace cuwarden::ledger {

// Returns an estimate of the device's free bytes: those of its last reading (cuMemGetInfo), less
// the implicit memory that the driver has taken since, plus that which it has given back. Later
// allocations and frees of the process also count, except in two cases: the process ended by
// itself, or cuwarden's pool holds memory of the device. Changes by memory pools and by other
// processes are not known. `series`: the totals of each kind of memory on each device. Returns the
// free bytes of the reading if the ledger lacks the figures for a correction, or has impossible
// ones. The result means nothing if DeviceView::at is `never`.
std::uint64_t free_bytes_now(const DeviceView&, const std::vector<SeriesView>& series);

}  // namespace cuwarden::ledger
