// Foretells how long a device's free memory lasts if the growing groups of allocations go on
// growing as before.
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

// The speed at which the process's live memory on one device grows. Each growing group of
// allocations (stack, function, kind, device) counts in one of the two sums.
struct GrowthRates {
  // Bytes that are added in each step of the program by groups whose growth is measured in steps;
  // 0: there is no such group.
  std::uint64_t bytes_per_step = 0;
  // Bytes that are added in each minute by groups whose growth is measured in time. Only groups
  // that have grown for at least a minute count; 0: there is no such group.
  std::uint64_t bytes_per_minute = 0;
};

// The growth of the process's live memory on one device.
struct DeviceGrowth {
  // CUDA ordinal of the device.
  DeviceOrdinal device;
  // Speed at which the device's live memory grows.
  GrowthRates rates;
  // Bytes of the device that PyTorch's allocator holds but has not handed out. New blocks of
  // PyTorch fill these bytes before they take more of the device. 0 if the growth is not that of
  // blocks.
  std::uint64_t idle_bytes = 0;
  // The group of allocations that grows fastest. Groups that grow by steps of the program come
  // before groups that grow by minutes. Points into an argument of growth_of_devices(), whose
  // results never have null here.
  const LeakGroup* fastest = nullptr;
};

// Returns the growth of each device that has growing groups of allocations. Devices whose live
// bytes are known not to have risen are left out, unless objects such as streams grow. If the live
// bytes rose less than the groups say, only groups count of which nothing was freed, and their
// rates may be reduced in proportion. `reader` reads the ledger of the groups. `groups`: the leak
// groups without `blocks`. `blocks`: result of take_blocks(), the groups of blocks that frameworks
// have handed out.
// Blocks lie inside the memory of `groups`. So the two are not added: the one that grows faster
// counts. These groups count for nothing: memory of the host, managed and imported memory, and code
// that was loaded by its first launches. Neither counts memory that the end of its context
// released, nor a group whose older allocations were all freed.
std::vector<DeviceGrowth> growth_of_devices(const ledger::Reader& reader,
                                            const std::vector<LeakGroup>& groups,
                                            const std::vector<LeakGroup>& blocks);

// The number of steps of the program, and the number of minutes, until a device is full, both
// rounded down. `steps` follows from the groups that grow by steps, `minutes` from the other
// growing groups; neither counts the growth of the other. Null: no group grows in this way.
struct Exhaustion {
  std::optional<std::uint64_t> steps, minutes;
};
// Returns the number of steps and of minutes until a device is full. `free_bytes`: free bytes of
// the device. `growth`: growth of its live memory; DeviceGrowth::idle_bytes count as free, too.
Exhaustion exhaustion_of(std::uint64_t free_bytes, const DeviceGrowth& growth);

// Calls the last parameter, with a row of the report, for each device with growing groups of
// allocations. Devices whose memory was never read (cuMemGetInfo) are left out. `series`:
// result of all_series(). `groups`: the leak groups without `blocks`. `blocks`: result of
// take_blocks(), the groups of blocks that frameworks have handed out. CallFrames::name_all() must
// have been called, with the stacks of all groups.
void put_forecasts(const ledger::Reader&, const std::vector<ledger::SeriesView>& series,
                   const std::vector<LeakGroup>& groups, const std::vector<LeakGroup>& blocks,
                   const CallFrames&, Put<model::Forecast>);

}  // namespace cuwarden
