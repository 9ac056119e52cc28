// Physical handles (cuMemCreate) of the virtual memory functions. A handle stands for memory that
// can be mapped at several addresses at once; bytes written through one address are read through
// the others.
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// Memory behind a CUmemGenericAllocationHandle, whose value is the object's address.
struct PhysicalHandle {
  CUmemAllocationProp properties{};  // As given to cuMemCreate.
  Device* device = nullptr;          // Null for host memory.
  std::size_t size = 0;              // In bytes.
  // Address at which the simulator itself has mapped the memory; mappings for the program are made
  // from it (mremap). Null once the memory is gone.
  void* window = nullptr;
  // Descriptor of the memory's file, if the handle may be exported or was imported; otherwise -1.
  int descriptor = -1;
  // True if the memory is another handle's, imported from a descriptor, and is counted there.
  bool imported = false;
  unsigned references = 1;  // Number of cuMemCreate, import and retain without cuMemRelease.
  unsigned mappings = 0;    // Number of address ranges at which the program has mapped the handle.
};

// Returns all physical handles of the process.
Handles<PhysicalHandle>& physical_handles();

// Makes a physical handle of `size` bytes. `descriptor`: file with the memory, which the handle
// owns from now on if the call succeeds; -1: new memory. `imported`: true if another handle's
// memory is imported, whose bytes are counted already; otherwise the bytes are taken from the
// device. Returns null if the system or the device has no room.
PhysicalHandle* make_physical(const CUmemAllocationProp& properties, std::size_t size,
                              int descriptor, bool imported);
// Gives the handle's memory back if the handle has no references and no mappings left; otherwise
// does nothing.
void drop_physical(PhysicalHandle& handle);

// The bit that stands for the host in Range::readable and Range::writable, in which bit n stands
// for the device with ordinal n.
constexpr std::uint64_t kHostBit = std::uint64_t{1} << 63;

}  // namespace cuwarden::simulated_gpu
