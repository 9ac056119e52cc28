// The worst moment of each device: the moment of the run at which most of its memory was locked,
// that is, free in slabs that had another live piece. The process counted the pieces of each page
// during the run. slabs.hpp, in contrast, works out the slabs at the end of the process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/call_frames.hpp"
#include "reporters/tables/slabs.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The slabs of a device at its worst moment: when most freed memory was locked in partly live
// slabs.
struct WorstSlabs {
  std::uint64_t time_ns = 0;  // time of the worst moment, in ns since the process's start
  // At the worst moment: bytes that were locked in slabs, and bytes that rounding added to
  // requests.
  std::uint64_t locked_bytes = 0, rounding_bytes = 0;
  // Time of the device's last reading (cuMemGetInfo) before the worst moment, in ns since the
  // process's start, and the device's free bytes then. Both are 0 if there was no reading.
  std::uint64_t read_ns = 0, free_bytes = 0;
  // Unused bytes of memory pools and graphs at the device's last reading before the worst moment;
  // null: unknown.
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  // Number of pieces whose addresses showed that they share a page with another one, as pieces of
  // slabs do; 0: none was seen.
  std::uint64_t pieces_seen = 0;
  std::vector<Slab> slabs;  // sorted by address
  // Slabs by Slab::class_bytes; the class of a slab is that of its average piece.
  std::map<std::uint64_t, SlabClass> classes;
  // Time at which the groups in `holders` were copied, in ns since the process's start: at or a
  // little before the worst moment. Bytes that were locked in all slabs at that time.
  std::uint64_t holders_time_ns = 0, holders_locked_bytes = 0;
  // Groups of allocations (stack, function, kind, device) that locked most at holders_time_ns.
  std::vector<std::pair<GroupId, SlabHolder>> holders;
};

// Returns the slabs of each device at its worst moment, by device ordinal. A device is left out if
// its driver cuts slabs in another way than the process assumed when it counted, or if there were
// too many slabs to count. If 64 MiB or more were locked on a device that is left out, a line is
// added to `reasons`. The second parameter is the result of find_fragmentation() for this ledger.
std::map<std::int32_t, WorstSlabs> find_worst_slabs(const ledger::Reader&,
                                                    const std::map<std::int32_t, Fragmentation>&,
                                                    std::vector<std::string>& reasons);

// Adds the call stacks of the groups of allocations that locked most at each device's worst moment
// to the report's stacks, the last parameter.
void add_stacks(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&, CallFrames&);
// Pass rows of the report about each device's worst moment to the last parameter, a callback: one
// for each device; one for each slab; one for each group of allocations that locked most.
void put_worst_fragmentation(const std::map<std::int32_t, WorstSlabs>&,
                             Put<model::WorstFragmentation>);
void put_worst_slab_map(const std::map<std::int32_t, WorstSlabs>&, Put<model::WorstSlab>);
void put_worst_slab_holders(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&,
                            const CallFrames&, Put<model::WorstSlabHolder>);

}  // namespace cuwarden
