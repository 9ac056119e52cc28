// The worst moment of each device: the moment of the run at which most of its memory was locked in
// slabs. A slab is a 2 MiB page from which the driver cuts small requests, its pieces. Its unused
// bytes are locked as long as a piece is live. The process counted the pieces of each slab during
// the run. slabs.hpp, in contrast, works out the slabs at the end of the process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reporters/model/fragmentation.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/slabs.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// The slabs of a device (2 MiB pages from which the driver cuts small requests, their pieces) at
// the device's worst moment: the moment of the run at which most unused memory was locked in slabs
// by live pieces.
struct WorstSlabs {
  // Figures that the process recorded about that moment, such as its time and the locked bytes. The
  // holders may be those of an earlier moment (Worst::holders_ns).
  ledger::SeriesView::Worst moment;
  // Bytes that rounding had added to the live requests when most memory was locked in slabs.
  std::uint64_t rounding_bytes = 0;
  // Slabs (2 MiB pages) that had a live piece when most memory was locked in slabs, sorted by
  // address.
  std::vector<LiveSlab> slabs;
  // Sums over the slabs of each size class, by the class in bytes (LiveSlab::class_bytes): the size
  // of a slab's average piece, rounded up to a power of two.
  std::map<std::uint64_t, SlabClass> classes;

  // Returns the groups of allocations (stack, function, kind, device) whose live pieces locked most
  // bytes in slabs at the time moment.holders_ns (in ns since the process's start). This is the
  // moment at which most was locked, or an earlier one. The result is valid as long as the object.
  std::span<const ledger::WorstHolderView> holders() const {
    return {moment.holders.begin(),
            std::ranges::find(moment.holders, GroupId{}, &ledger::WorstHolderView::group)};
  }
};

// Returns the slabs of each device, by CUDA ordinal, at the device's worst moment: when most memory
// was locked in slabs. `fragmentations`: result of find_fragmentation() for this ledger. A device
// is left out if no memory of it was ever locked. It is also left out if its slabs could not be
// counted: the driver cuts slabs in another way than the process assumed, or there were too many.
// Then a sentence is added to `reasons` if 64 MiB or more were locked.
std::map<std::int32_t, WorstSlabs> find_worst_slabs(
    const ledger::Reader&, const std::map<std::int32_t, Fragmentation>& fragmentations,
    std::vector<std::string>& reasons);

// Adds the call stacks of all WorstSlabs::holders() (the groups of allocations that locked most
// memory in slabs) to the CallFrames.
void add_stacks(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&, CallFrames&);
// Calls the last parameter, with a row of the report, for each device: the moment at which most of
// its memory was locked in slabs (unused, but in 2 MiB pages with live pieces), and the figures of
// that moment.
void put_worst_fragmentation(const std::map<std::int32_t, WorstSlabs>&,
                             Put<model::WorstFragmentation>);
// Calls the last parameter, with a row of the report, for each slab (2 MiB page of small requests)
// with a live piece at the worst moment of its device. At that moment most memory was locked in
// slabs.
void put_worst_slab_map(const std::map<std::int32_t, WorstSlabs>&, Put<model::WorstSlab>);
// Calls the last parameter, with a row of the report, for each group of allocations in
// WorstSlabs::holders(), which locked most memory in slabs. Rows name no stack that add_stacks()
// has not added.
void put_worst_slab_holders(const ledger::Reader&, const std::map<std::int32_t, WorstSlabs>&,
                            const CallFrames&, Put<model::WorstSlabHolder>);

}  // namespace cuwarden
