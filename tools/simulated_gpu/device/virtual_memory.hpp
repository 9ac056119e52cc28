// Physical handles of the virtual memory functions. A handle is a piece of shared memory that can
// be mapped at several addresses at once. Bytes written through one address are read through the
// others.
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

struct PhysicalHandle {
  CUmemAllocationProp properties{};
  Device* device = nullptr;  // Null for host memory.
  std::size_t size = 0;
  // The address at which this driver maps the handle, to map it again elsewhere.
  void* window = nullptr;
  // Descriptor of a handle that may be exported or was imported; -1 for others.
  int descriptor = -1;
  bool imported = false;  // True if another handle's account holds the bytes.
  unsigned references = 1;
  unsigned mappings = 0;
};

Handles<PhysicalHandle>& physical_handles();

// Makes a handle for `descriptor`, which it takes over, or for new memory if that is -1. Returns
// null if the system or the device refuses.
PhysicalHandle* make_physical(const CUmemAllocationProp& properties, std::size_t size,
                              int descriptor, bool imported);
// Ends the handle if there are no references and no mappings left.
void drop_physical(PhysicalHandle& handle);

// The host's bit in Range::readable and Range::writable.
constexpr std::uint64_t kHostBit = std::uint64_t{1} << 63;

}  // namespace cuwarden::simulated_gpu
