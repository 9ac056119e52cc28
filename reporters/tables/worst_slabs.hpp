// The worst moment of each device: the moment of the run at which most of its memory was locked.
// Locked memory is unused, but in slabs (2 MiB pages that the driver cuts small requests from) that
// had a live piece. The process counted the pieces of each slab during the run. slabs.hpp, in
// contrast, works out the slabs at the end of the process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/slabs.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The slabs of a device at its worst moment: the moment of the run at which most unused memory was
// locked in slabs, since they had live pieces.
struct WorstSlabs {
  // Time at which most memory of the device was locked in slabs, in ns since the process's start.
  std::uint64_t time_ns = 0;
  // locked_bytes: unused bytes of the device at time_ns that were locked in slabs. rounding_bytes:
  // bytes that rounding had added to the requests that were live then.
  std::uint64_t locked_bytes = 0, rounding_bytes = 0;
  // Time of the device's last reading (cuMemGetInfo) before holders_time_ns, in ns since the
  // process's start, and the device's free bytes in that reading. Both are meaningless if read_ns
  // is 0: there was no reading.
  std::uint64_t read_ns = 0, free_bytes = 0;
  // Unused bytes of the process's memory pools (CUmemoryPool) and graphs at read_ns, when the
  // device's free bytes were read; null: unknown.
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  // Number of live pieces whose addresses showed at holders_time_ns that they share a 2 MiB page
  // with another piece, as pieces of slabs do; 0: none was seen.
  std::uint64_t pieces_seen = 0;
  // Slabs (2 MiB pages) with a live piece at time_ns, sorted by address.
  std::vector<LiveSlab> slabs;
  // Sums over the slabs of each size class, by the class in bytes (LiveSlab::class_bytes): the size
  // of a slab's average piece, rounded up to a power of two.
  std::map<std::uint64_t, SlabClass> classes;
  // Time at which `holders` was made, in ns since the process's start: the moment at which most
  // memory was locked, or an earlier one. Bytes that were locked in all slabs at that time. Both
  // are 0 if `holders` was never made.
  std::uint64_t holders_time_ns = 0, holders_locked_bytes = 0;
  // Groups of allocations (stack, function, kind, device) whose live pieces locked most bytes in
  // slabs at holders_time_ns.
  std::vector<std::pair<GroupId, SlabHolder>> holders;
};

// Returns the slabs of each device at its worst moment (at which most memory was locked in slabs),
// by CUDA ordinal. A device on which no memory was ever locked is left out. A device is also left
// out if the driver cuts slabs in another way than the process assumed, or if there were too many
// slabs to count. If 64 MiB or more were locked on such a device, a sentence is added to `reasons`.
// The second parameter is the result of find_fragmentation() for this ledger.
std::map<std::int32_t, WorstSlabs> find_worst_slabs(const ledger::Reader&,
                                                    const std::map<std::int32_t, Fragmentation>&,
                                                    std::vector<std::string>& reasons);

// Adds the call stacks of all WorstSlabs::holders, the groups of allocations that locked most
// memory in slabs, to the report's stacks (the last parameter).
void add_stacks(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&, CallFrames&);
// Calls the last parameter, with a row of the report, for each device: its worst moment, at which
// most memory was locked in slabs (unused, but in 2 MiB pages with live pieces).
void put_worst_fragmentation(const std::map<std::int32_t, WorstSlabs>&,
                             Put<model::WorstFragmentation>);
// Calls the last parameter, with a row of the report, for each slab that had a live piece at the
// worst moment of its device. At that moment most memory was locked in slabs.
void put_worst_slab_map(const std::map<std::int32_t, WorstSlabs>&, Put<model::WorstSlab>);
// Calls the last parameter, with a row of the report, for each group of allocations in
// WorstSlabs::holders, which locked most memory in slabs. Rows name no stack that add_stacks() has
// not added.
void put_worst_slab_holders(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&,
                            const CallFrames&, Put<model::WorstSlabHolder>);

}  // namespace cuwarden
