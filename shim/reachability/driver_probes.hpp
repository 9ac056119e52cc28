// Allocates small blocks that nothing but the driver knows. A search for pointers learns from them
// what the driver's own records of blocks look like.
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

// The kinds of blocks to allocate, as bits of a set.
enum ProbeKinds : unsigned {
  probe_device = 1u << 0,          // cuMemAlloc
  probe_pinned = 1u << 1,          // cuMemHostAlloc
  probe_managed = 1u << 2,         // cuMemAllocManaged
  probe_stream_ordered = 1u << 3,  // cuMemAllocAsync in the default stream
  probe_vmm = 1u << 4,             // cuMemCreate and cuMemMap
  probe_array = 1u << 5,           // cuArrayCreate
};

// Blocks that the driver alone knows; the destructor frees them, with the context of the
// constructor current. Calls the driver's own functions, so that nothing is recorded. The context
// must be idle: freeing a block waits for its work.
class DriverProbes {
 public:
  // Allocates blocks of these kinds in the current context. `kinds`: bits of ProbeKinds. `device`:
  // the context's device. `freed`: addresses that the program has freed. A block at such an address
  // is no probe, since the program may still have an old pointer to it. A kind of which the driver
  // refuses a block is left out. Takes about 66 MiB of the device's memory. Throws std::bad_alloc
  // before it allocates any block.
  DriverProbes(const driver::RealDriver& real, DeviceOrdinal device, unsigned kinds,
               const tracking::FreedAddresses& freed);
  ~DriverProbes();
  DriverProbes(const DriverProbes&) = delete;
  DriverProbes& operator=(const DriverProbes&) = delete;

  // Returns the kind (reachability::Block::kind) of the driver's records of such a block.
  static std::uint8_t kind_of(ProbeKinds kind, std::uint64_t start, std::uint64_t bytes);
  // Returns the blocks, each with another number. They belong to this object.
  const std::vector<reachability::Block>& blocks() const { return blocks_; }
  // Leaves the blocks to the end of the process: the destructor frees nothing.
  void abandon() { made_.clear(), mapped_.clear(), pool_ = nullptr; }

 private:
  // Stores a block that the driver has given, to be freed as a block of `kind`. Returns false if
  // its address was freed before by the program.
  bool add(std::uint64_t start, std::uint64_t bytes, ProbeKinds kind);
  // Calls allocate() for a block of `bytes` until it gives one with an address that was never
  // freed, a few times at most. `allocate`: returns the address; 0: the driver has refused.
  void add_fresh(std::uint64_t bytes, ProbeKinds kind, FunctionRef<std::uint64_t()> allocate);
  // Calls allocate() for blocks of 960 KiB until as many of them as of the other blocks of the kind
  // begin a slab of the driver, one at least. Gives up after some attempts.
  // `allocate`: as for add_fresh().
  void add_slabs_with_room(ProbeKinds kind, FunctionRef<std::uint64_t()> allocate);
  // Returns a managed block; 0: the driver has refused.
  std::uint64_t allocate_managed(std::uint64_t bytes) const;
  // Allocates managed blocks that begin a range of addresses each.
  void add_new_ranges();
  // Allocate blocks of one kind.
  void add_linear();
  void add_pinned();
  void add_managed();
  void add_stream_ordered(DeviceOrdinal device);
  void add_vmm(DeviceOrdinal device);
  void add_arrays();

  // A mapped handle of virtual memory.
  struct Mapped {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
  };
  const driver::RealDriver& real_;
  std::vector<reachability::Block> blocks_;
  // Start and kind of all blocks that are to be freed, but the mapped ones.
  std::vector<std::pair<std::uint64_t, ProbeKinds>> made_;
  std::vector<Mapped> mapped_;
  CUmemoryPool pool_ = nullptr;  // a pool of which one block is allocated; null: there is none
  const tracking::FreedAddresses& freed_;
};

}  // namespace cuwarden::shim
