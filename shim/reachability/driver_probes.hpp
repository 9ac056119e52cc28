// Allocates small blocks that nothing but the driver knows. A search for pointers learns from them
// what the driver's own records of blocks look like.
#pragma once

#include <cstdint>
#include <vector>

#include "reporters/reachability/block_index.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

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

// Blocks that the driver alone knows; the destructor frees them. Calls the driver's own functions,
// so that nothing is recorded. The context must be idle: freeing a block waits for its work.
class DriverProbes {
 public:
  // Allocates blocks of these kinds in the current context. `kinds`: bits of ProbeKinds. `device`:
  // the context's device. A kind of which the driver refuses a block is left out. Takes 20 MiB of
  // the device's memory for a moment. Throws std::bad_alloc.
  DriverProbes(const driver::RealDriver& real, DeviceOrdinal device, unsigned kinds);
  ~DriverProbes();
  DriverProbes(const DriverProbes&) = delete;
  DriverProbes& operator=(const DriverProbes&) = delete;

  // Returns the kind (reachability::Block::kind) of the driver's records of such a block.
  static std::uint8_t kind_of(ProbeKinds kind, std::uint64_t start, std::uint64_t bytes);
  // Returns the blocks, each with another number. They belong to this object.
  const std::vector<reachability::Block>& blocks() const { return blocks_; }

 private:
  // Stores a block that the driver has given. `free`: how it is freed.
  void add(std::uint64_t start, std::uint64_t bytes, ProbeKinds free);
  // Allocate blocks of one kind.
  void add_linear();
  void add_pinned();
  void add_managed();
  void add_stream_ordered();
  void add_vmm(DeviceOrdinal device);
  void add_arrays();

  // A mapped handle of virtual memory.
  struct Mapped {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
  };
  const driver::RealDriver& real_;
  std::vector<reachability::Block> blocks_;
  std::vector<ProbeKinds> kinds_;  // kind of each block
  std::vector<Mapped> mapped_;
};

}  // namespace cuwarden::shim
