// Tells when a device will be full if the memory of the groups that grow goes on as before.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Sums over the growing groups of one device.
struct GrowthRates {
  // Groups that grow by steps of the program, in bytes per step; 0: no group does.
  std::uint64_t bytes_per_step = 0;
  // Groups that grow by time, and do so for at least a minute, in bytes per minute; 0: no group
  // does.
  std::uint64_t bytes_per_minute = 0;
};

// The growth of the live memory of one device.
struct DeviceGrowth {
  DeviceOrdinal device;
  GrowthRates rates;
  // The group that grows fastest, by steps if one does. Points into the argument of
  // growth_of_devices(); not null.
  const LeakGroup* fastest = nullptr;
};

// Returns the growth of each device that has growing groups. Blocks of frameworks lie in memory
// that other groups have: the one or the other counts, whichever grows faster. Imported memory is
// another process's, and counts for nothing.
std::vector<DeviceGrowth> growth_of_devices(const std::vector<LeakGroup>& groups,
                                            const std::vector<LeakGroup>& blocks);

// The number of steps or minutes after which a device is full; null: it does not grow by them.
struct Exhaustion {
  std::optional<std::uint64_t> steps, minutes;
};
// Returns the exhaustion of `free_bytes` free bytes at this growth.
Exhaustion exhaustion_of(std::uint64_t free_bytes, const GrowthRates&);

// Calls the last parameter, with a row of the report, for each device with growing groups whose
// memory was read. `series`: all_series(). CallFrames::name_all() must have been called.
void put_forecasts(const ledger::Reader&, const std::vector<ledger::SeriesView>& series,
                   const std::vector<LeakGroup>& groups, const std::vector<LeakGroup>& blocks,
                   const CallFrames&, Put<model::Forecast>);

}  // namespace cuwarden
