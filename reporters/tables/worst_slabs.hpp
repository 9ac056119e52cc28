// The moment of the run at which most of a device's memory was free in slabs and locked there, as
// the process counted it page by page; slabs.hpp sees the last one.
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

// The slabs of a device at the moment of the run when most memory was locked.
struct WorstSlabs {
  std::uint64_t time_ns = 0;
  std::uint64_t locked_bytes = 0, rounding_bytes = 0;
  // The device's last reading before that moment; read_ns is 0 if there was none.
  std::uint64_t read_ns = 0, free_bytes = 0;
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  std::uint64_t pieces_seen = 0;  // pieces that shared a page, as slabs assume; 0: none was seen
  std::vector<Slab> slabs;        // by address
  // by class_bytes; a slab's class is that of its average piece
  std::map<std::uint64_t, SlabClass> classes;
  // Groups that held pieces of slabs at holders_time_ns, a little earlier, when
  // `holders_locked_bytes` were locked in all.
  std::uint64_t holders_time_ns = 0, holders_locked_bytes = 0;
  std::vector<std::pair<GroupId, SlabHolder>> holders;
};

// Returns the worst moment by device ordinal. A device is left out if its driver cuts slabs in
// another way than the counters assumed; if much may be lost by that, a line is added to `reasons`.
std::map<std::int32_t, WorstSlabs> find_worst_slabs(const ledger::Reader&,
                                                    const std::map<std::int32_t, Fragmentation>&,
                                                    std::vector<std::string>& reasons);

void add_stacks(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&, CallFrames&);
void put_worst_fragmentation(const std::map<std::int32_t, WorstSlabs>&,
                             Put<model::WorstFragmentation>);
void put_worst_slab_map(const std::map<std::int32_t, WorstSlabs>&, Put<model::WorstSlab>);
void put_worst_slab_holders(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&,
                            const CallFrames&, Put<model::WorstSlabHolder>);

}  // namespace cuwarden
