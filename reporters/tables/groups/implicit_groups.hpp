// Contexts, streams, modules and executable graphs of the process, and memory that calls took for
// kernels, by call stack. Each has the device memory that the driver took without being asked for
// memory.
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

// Bytes of each device's contexts, as the item `context` of the table `accounts` has them. The key
// is the device's ordinal.
using ContextBytes = std::map<std::int32_t, std::uint64_t>;

// Moves the groups of implicit memory (device memory that no allocation call asked for, such as
// that of contexts and streams) out of the leak groups into the result. Groups that grow are leaks
// like others, and stay among the leak groups, too, but for code that first launches loaded and for
// memory of kernels. Adds groups of which no object is live.
//
// No record has the bytes of a device's first context. The group of the device's oldest live
// context gets what `ContextBytes` has beyond the recorded contexts; devices that are missing there
// get nothing.
//
// The largest come first, by bytes, then by count.
std::vector<LeakGroup> implicit_groups(const ledger::Reader&, const ContextBytes&,
                                       std::vector<LeakGroup>& leaks);
// Calls the last parameter, with a row of the report, for each of the groups that implicit_groups()
// has returned. CallFrames::name_all() must have been called.
void put_implicit_groups(const ledger::Reader&, const std::vector<LeakGroup>&, const CallFrames&,
                         Put<model::ImplicitGroup>);

}  // namespace cuwarden
