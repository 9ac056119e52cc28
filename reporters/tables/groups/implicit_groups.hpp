// Makes the report's table about implicit memory, by call stack: device memory that the driver took
// without being asked for memory. The driver takes it for contexts, streams, modules and executable
// graphs, and for the kernels that a call launches.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reporters/model/memory.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Bytes of the contexts of each device, by its CUDA ordinal; result of context_bytes().
using ContextBytes = std::map<std::int32_t, std::uint64_t>;

// Moves groups of implicit memory (device memory that no allocation call asked for, such as that of
// contexts and streams) out of the leak groups, and returns them. Adds groups of which no object is
// live, which have 0 bytes. The result is sorted by bytes, then by count, largest first.
//
// Groups that grow are leaks like others, so they also stay among the leak groups. Two kinds of
// groups never stay: code that was loaded by its first launch, and memory for kernels. Groups that
// the end of a context released are removed from the leak groups, and are not returned.
//
// The ledger has no record of the bytes of a device's first context. The group of the device's
// oldest live context gets them: the bytes in `ContextBytes` less those of all recorded contexts,
// and less those that the driver keeps of contexts that have ended. Devices that are missing in
// `ContextBytes` get nothing.
std::vector<LeakGroup> implicit_groups(const ledger::Reader&, const ContextBytes&,
                                       std::vector<LeakGroup>& leaks);
// Returns the groups of implicit memory of a process that still runs, in no order. Groups of which
// no object is live have 0 bytes. Bytes of a device's first context are left out. Counts and bytes
// come from the groups' counters. Records of single objects are not read, so a ledger of many
// allocations costs no more than one of few.
std::vector<LeakGroup> live_implicit_groups(const ledger::Reader&);
// Calls the last parameter, with a row of the report, for each of the groups, which are the result
// of implicit_groups(). CallFrames::name_all() must have been called.
void put_implicit_groups(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                         Put<model::ImplicitGroup>);

}  // namespace cuwarden
