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

struct WorstSlabs {
  std::uint64_t time_ns = 0;
  std::uint64_t locked_bytes = 0, rounding_bytes = 0;
  // The last reading of the device before its holders were looked at; read_ns is 0 without one.
  std::uint64_t read_ns = 0, free_bytes = 0;
  std::optional<std::uint64_t> memory_pool_idle_bytes;
  std::uint64_t pieces_seen = 0;  // that shared pages as they are counted; 0: none was looked at
  std::vector<Slab> slabs;        // by address
  std::map<std::uint64_t, SlabClass> classes;  // by class_bytes; a slab's: of its average piece
  // Groups that locked slabs a little earlier, when `holders_locked_bytes` were locked in all.
  std::uint64_t holders_time_ns = 0, holders_locked_bytes = 0;
  std::vector<std::pair<GroupId, SlabHolder>> holders;
};

// By device. Not of one whose slabs turned out to be cut in another way than they were counted;
// where that may have been much, `reasons` has a line for it.
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
