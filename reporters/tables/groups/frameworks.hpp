// Tables about the memory that frameworks, such as PyTorch, have taken from CUDA: their own
// figures, and the blocks that they have handed out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reporters/model/frameworks.hpp"
#include "reporters/model/put.hpp"
#include "reporters/tables/groups/call_frames.hpp"
#include "reporters/tables/groups/leak_groups.hpp"
#include "reporters/verdicts/incident_case.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Moves the groups of blocks that frameworks have handed out (Kind::framework_block) out of the
// leak groups into the result. The blocks lie in memory of other groups.
std::vector<LeakGroup> take_blocks(std::vector<LeakGroup>& leaks);

// Returns the bytes that PyTorch's allocator has taken from CUDA on the device. `reported_bytes`:
// the sum that it gave with its last block. It reports no segment that it gives back later. So the
// result is at most the live bytes for which it asked, if these can hold `allocated_bytes`, the
// bytes of its blocks.
std::uint64_t reserved_by_pytorch(const ledger::Reader&, DeviceOrdinal,
                                  std::uint64_t reported_bytes, std::uint64_t allocated_bytes);

// Returns the bytes that PyTorch's allocator holds on the device now, and has not handed out; 0 if
// it has given no figures.
std::uint64_t idle_of_pytorch(const ledger::Reader&, DeviceOrdinal);

// The free memory in the segments that PyTorch's allocator has taken from CUDA on one device.
struct FreeBlocks {
  // Number and bytes of holes: free blocks in segments of which another part is in use.
  std::uint64_t hole_count = 0, hole_bytes = 0;
  std::uint64_t largest_bytes = 0;  // bytes of the largest free block
};
// Returns the free memory of PyTorch's segments on the device. Null if no block of the device is
// recorded: the program was not asked to record blocks (CUWARDEN_TENSORS), or none is live.
std::optional<FreeBlocks> free_blocks_of_pytorch(const ledger::Reader&, DeviceOrdinal);

// Calls the last parameter, with a row of the report, for each pool of a framework's memory: with
// the figures that the framework has given, latest ones and those at refused requests; for
// frameworks that have given none, with the live allocations (`leaks`) for which they asked. The
// stacks of `leaks` must have been added to the frames.
void put_frameworks(const ledger::Reader&, const std::vector<LeakGroup>& leaks,
                    const std::vector<IncidentCase>&, const CallFrames&, Put<model::Framework>);
// Adds the call stacks of blocks of which frameworks themselves have given the figures.
void add_stacks_of_frameworks(const ledger::Reader&, CallFrames&);
// Calls the last parameter, with a row of the report, for each call stack with blocks: those that
// frameworks themselves have listed, and the groups that take_blocks() has returned.
// CallFrames::name_all() must have been called.
void put_framework_sites(const ledger::Reader&, const std::vector<LeakGroup>& blocks,
                         const CallFrames&, Put<model::FrameworkSite>);

}  // namespace cuwarden
