// Makes the report's tables about the memory that frameworks, such as PyTorch, have taken from
// CUDA: the frameworks' own figures, and the blocks that they have handed out.
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

// Moves groups of blocks out of the leak groups, and returns them. Blocks (Kind::framework_block)
// are parts of memory that a framework has handed out, such as the memory of tensors. They lie
// inside the memory of other groups.
std::vector<LeakGroup> take_blocks(std::vector<LeakGroup>& leaks);

// Returns the bytes that PyTorch's allocator has taken from CUDA on the device and not given back.
// `reported_bytes`: bytes taken from CUDA, as PyTorch stated them with its last block.
// `allocated_bytes`: bytes of the blocks that it has handed out. PyTorch does not report memory
// that it gives back afterwards. So the result is at most the live bytes for which, by the ledger,
// PyTorch's allocator asked CUDA. This limit is not applied if it is below `allocated_bytes`, or if
// a call stack is missing.
std::uint64_t reserved_by_pytorch(const ledger::Reader&, DeviceOrdinal,
                                  std::uint64_t reported_bytes, std::uint64_t allocated_bytes);

// Returns the bytes of the device that PyTorch's allocator has taken from CUDA and not handed out,
// by its latest figures; 0 if it has given none.
std::uint64_t idle_of_pytorch(const ledger::Reader&, DeviceOrdinal);

// The free memory in the segments of PyTorch's allocator on one device. A segment is memory that
// the allocator has taken from CUDA in one call, or that grows by several.
struct FreeBlocks {
  // Number and bytes of holes: free parts of segments of PyTorch's allocator of which another part
  // is handed out.
  std::uint64_t hole_count = 0, hole_bytes = 0;
  // Bytes of the largest free part of a segment of PyTorch's allocator on the device.
  std::uint64_t largest_bytes = 0;
};
// Returns the free memory in the segments of PyTorch's allocator on the device. Null if no block of
// the device is recorded: the user did not ask for records of blocks (CUWARDEN_TENSORS), or none is
// live.
std::optional<FreeBlocks> free_blocks_of_pytorch(const ledger::Reader&, DeviceOrdinal);

// Calls the last parameter, with a row of the report, for each pool of a framework's memory: one
// row with the latest figures that the framework gave, and one with its figures at each refused
// request. A framework that has given no figures gets a row with the bytes of the live allocations
// (`leaks`) for which its library asked. The stacks of `leaks` must have been added to the
// CallFrames.
void put_frameworks(const ledger::Reader&, const std::vector<LeakGroup>& leaks,
                    const std::vector<IncidentCase>&, const CallFrames&, Put<model::Framework>);
// Adds to the CallFrames the call stacks by which frameworks themselves have listed their blocks.
void add_stacks_of_frameworks(const ledger::Reader&, CallFrames&);
// Calls the last parameter, with a row of the report, for each call stack with blocks that a
// framework has handed out: those that frameworks themselves have listed, and those of `blocks`,
// the result of take_blocks(). CallFrames::name_all() must have been called.
void put_framework_sites(const ledger::Reader&, const std::vector<LeakGroup>& blocks,
                         const CallFrames&, Put<model::FrameworkSite>);

}  // namespace cuwarden
