// Tells how long a device's free memory lasts if the growing groups go on growing as before.
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

// The growth of one device's live memory.
struct GrowthRates {
  // Sum of the growth of the groups that are judged by steps of the program, in bytes per step; 0:
  // there are none.
  std::uint64_t bytes_per_step = 0;
  // Sum of the growth of the groups that are not judged by steps and have grown for at least a
  // minute, in bytes per minute; 0: there are none.
  std::uint64_t bytes_per_minute = 0;
};

// The growth of the live memory of one device.
struct DeviceGrowth {
  DeviceOrdinal device;
  GrowthRates rates;
  // Bytes that a framework holds but has not handed out, if its blocks are what grows: these fill
  // up before the device does. Otherwise 0.
  std::uint64_t idle_bytes = 0;
  // The group that grows fastest: by steps if one does, otherwise by minutes. Points into an
  // argument of growth_of_devices(), in whose results it is never null.
  const LeakGroup* fastest = nullptr;
};

// Returns the growth of each device that has growing groups, and whose live bytes rose. `blocks`:
// result of take_blocks(), which has taken them out of `groups`. Blocks of frameworks lie inside
// the memory of `groups`, so that the two are not added: the faster sum counts. Memory of the host,
// managed and imported memory, and memory that the end of a context released count for nothing.
// `reader` reads the ledger of the groups.
std::vector<DeviceGrowth> growth_of_devices(const ledger::Reader& reader,
                                            const std::vector<LeakGroup>& groups,
                                            const std::vector<LeakGroup>& blocks);

// The number of steps, and of minutes, after which a device is full, rounded down. Each ignores the
// growth that the other tells of. Null: no group grows by steps, or by time.
struct Exhaustion {
  std::optional<std::uint64_t> steps, minutes;
};
// Returns the exhaustion of a device with `free_bytes` free bytes at this growth.
Exhaustion exhaustion_of(std::uint64_t free_bytes, const DeviceGrowth&);

// Calls the last parameter, with a row of the report, for each device that has growing groups, and
// of which there is a reading. `series`: all_series(). `groups`, `blocks`: as in
// growth_of_devices(). CallFrames::name_all() must have been called, with the stacks of all groups.
void put_forecasts(const ledger::Reader&, const std::vector<ledger::SeriesView>& series,
                   const std::vector<LeakGroup>& groups, const std::vector<LeakGroup>& blocks,
                   const CallFrames&, Put<model::Forecast>);

}  // namespace cuwarden
