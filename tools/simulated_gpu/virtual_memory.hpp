// Physical handles of the virtual memory API. A handle is a piece of shared memory that
// can be mapped at several addresses at once; what is written through one is read
// through the others.
#pragma once

#include "tools/simulated_gpu/state.hpp"

namespace cuwarden::simulated_gpu {

struct PhysicalHandle {
  CUmemAllocationProp properties{};
  Device* device = nullptr;  // null: host memory
  std::size_t size = 0;
  void* window = nullptr;  // where this driver maps it, to map it again elsewhere
  int descriptor = -1;     // of a handle that may be exported, or was imported
  bool imported = false;   // another handle's account holds the bytes
  unsigned references = 1;
  unsigned mappings = 0;
};

Handles<PhysicalHandle>& physical_handles();

// Makes a handle around `descriptor` (taken over), or around new memory where it is -1.
// Null when the system or the device refuses.
PhysicalHandle* make_physical(const CUmemAllocationProp& properties, std::size_t size,
                              int descriptor, bool imported);
// Ends the handle once nobody holds or maps it.
void drop_physical(PhysicalHandle& handle);

// Bits of Range::readable and Range::writable.
constexpr std::uint64_t kHostBit = std::uint64_t{1} << 63;

}  // namespace cuwarden::simulated_gpu
