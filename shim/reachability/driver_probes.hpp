// Allocates small blocks to which only the driver has pointers. A search for pointers learns from
// them what the driver's own records of blocks look like.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "reporters/reachability/block_index.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/tracking/freed_addresses.hpp"

namespace cuwarden::shim {

// Kinds of blocks that DriverProbes allocates, by the call that allocates them. The values are bits
// of a set.
enum ProbeKinds : unsigned {
  probe_device = 1u << 0,          // blocks from cuMemAlloc
  probe_pinned = 1u << 1,          // blocks from cuMemHostAlloc
  probe_managed = 1u << 2,         // blocks from cuMemAllocManaged
  probe_stream_ordered = 1u << 3,  // blocks from a memory pool, in the default stream
  probe_vmm = 1u << 4,             // handles from cuMemCreate, and their mappings by cuMemMap
  probe_array = 1u << 5,           // arrays from cuArrayCreate
};

// Blocks of memory to which only the driver has pointers. If a search for pointers finds an address
// of such a block, it has found a record of the driver's. Thus it learns the form of these records.
// The blocks are not recorded by cuwarden.
//
// The destructor frees the blocks, unless abandon() was called. It must run with the constructor's
// context current. That context must be idle, since freeing a block waits for the context's work.
class DriverProbes {
 public:
  // Allocates blocks of these kinds in the current context. `kinds`: bits of ProbeKinds. `device`:
  // the context's device. `freed`: addresses that the program has freed. A block at such an address
  // is no probe, since the program may still have an old pointer to it. A block that the driver
  // refuses is left out, and so is a kind for which the driver lacks a function. Takes about 66 MiB
  // of the device's memory. Throws std::bad_alloc before it allocates any block.
  DriverProbes(const driver::RealDriver& real, DeviceOrdinal device, unsigned kinds,
               const tracking::FreedAddresses& freed);
  ~DriverProbes();
  DriverProbes(const DriverProbes&) = delete;
  DriverProbes& operator=(const DriverProbes&) = delete;

  // Returns a number for the form of the records that the driver keeps of a block
  // (reachability::Block::kind). `kind`: one of ProbeKinds. `start`: the block's address or handle.
  // `bytes`: its size; 1 for a handle. Large blocks, and small ones that begin a slab (a 2 MiB unit
  // of the driver), have records of their own form.
  static std::uint8_t kind_of(ProbeKinds kind, std::uint64_t start, std::uint64_t bytes);
  // Returns the probes: blocks that this object has allocated, and to which only the driver has
  // pointers. Blocks at addresses that the program may have freed before are left out. The probes
  // are numbered from 0 (Block::id). The vector belongs to this object.
  const std::vector<reachability::Block>& blocks() const { return blocks_; }
  // Makes the destructor free nothing: the blocks stay allocated until the process ends.
  void abandon() { made_.clear(), mapped_.clear(), pool_ = nullptr; }

 private:
  // Stores a block that the driver has allocated, to be freed as a block of `kind`. If the program
  // once freed an allocation at this address, the block is no probe, and the result is false.
  bool add(std::uint64_t start, std::uint64_t bytes, ProbeKinds kind);
  // Allocates blocks until one lies at an address that the program never freed; 24 at most.
  // `allocate`: allocates a block of `bytes` and returns its address; 0: the driver has refused.
  void add_fresh(std::uint64_t bytes, ProbeKinds kind, FunctionRef<std::uint64_t()> allocate);
  // Allocates blocks of 960 KiB, two of which leave room in a slab (a 2 MiB unit of the driver).
  // Stops when enough of them begin a slab: as many as blocks of other sizes do, and at least one.
  // Gives up after 24 blocks. `allocate`: allocates a block and returns its address; 0: the driver
  // has refused.
  void add_slabs_with_room(ProbeKinds kind, FunctionRef<std::uint64_t()> allocate);
  // Allocates a managed block, and returns its address; 0: the driver has refused.
  std::uint64_t allocate_managed(std::uint64_t bytes) const;
  // Allocates managed blocks of 1 GiB, each of which begins a new range of the driver's addresses.
  // The driver keeps further records of the first block of a range.
  void add_new_ranges();
  // Allocates the blocks of kind probe_device. The functions below do so for one other kind each.
  void add_linear();
  void add_pinned();
  void add_managed();
  void add_stream_ordered(DeviceOrdinal device);
  void add_vmm(DeviceOrdinal device);
  void add_arrays();

  // Memory of cuMemCreate: its handle, and the start of the address range that was reserved for it;
  // 0: none was reserved.
  struct Mapped {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
  };
  // the driver's own functions
  const driver::RealDriver& real_;
  // Result of blocks(): all allocated blocks that are probes.
  std::vector<reachability::Block> blocks_;
  // Address (or handle) and kind of each block to be freed, except for those in mapped_.
  std::vector<std::pair<std::uint64_t, ProbeKinds>> made_;
  // Memory of cuMemCreate that the destructor frees.
  std::vector<Mapped> mapped_;
  // Memory pool of CUDA with the blocks of kind probe_stream_ordered. The destructor destroys it.
  // Null: none was made.
  CUmemoryPool pool_ = nullptr;
  // addresses that the program has freed
  const tracking::FreedAddresses& freed_;
};

}  // namespace cuwarden::shim
