// Physical handles (cuMemCreate) of the virtual memory functions. A handle owns memory that can be
// mapped at several addresses at once; bytes written through one address are read through the
// others.
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// Memory behind a CUmemGenericAllocationHandle, whose value is the object's address.
struct PhysicalHandle {
  // Properties of the memory, as given to cuMemCreate; for an imported handle, those of exportable
  // memory on the device that was current at the import.
  CUmemAllocationProp properties{};
  Device* device = nullptr;  // The device that has the memory; null for host memory.
  std::size_t size = 0;      // Bytes of the memory behind the handle.
  // Address in this process at which the simulator itself has mapped the handle's memory. Mappings
  // for the program are made from this one (mremap). Null once the memory was freed.
  void* window = nullptr;
  // Descriptor of the file that contains the memory, if the handle may be exported or was imported;
  // otherwise -1. Closed when the memory is freed.
  int descriptor = -1;
  // True if the handle was imported from a descriptor. The memory was made by another handle, and
  // only that one counts its bytes as used.
  bool imported = false;
  // Number of the program's calls that gave it the handle (create, import, retain), less the number
  // of its calls of cuMemRelease.
  unsigned references = 1;
  unsigned mappings = 0;  // Number of address ranges at which the program has mapped the handle.
};

// Returns the table of all physical handles of the process. Callers hold Simulator::mutex while
// they use the table.
Handles<PhysicalHandle>& physical_handles();

// Makes a physical handle of `size` bytes, with one reference; the table physical_handles() owns
// it. `descriptor`: file that contains the memory; -1: anonymous memory. If the call succeeds, the
// handle owns the descriptor; otherwise the caller still does. `imported`: true if another handle
// has made the memory. If false, `size` bytes are counted as used of the device, or of no device
// for host memory. Returns null if the system or the device has too little memory.
PhysicalHandle* make_physical(const CUmemAllocationProp& properties, std::size_t size,
                              int descriptor, bool imported);
// Frees the handle's memory if the handle has no references and no mappings left; otherwise does
// nothing. The object itself stays in memory.
void drop_physical(PhysicalHandle& handle);

// The bit that stands for the host in Range::readable and Range::writable, in which bit n stands
// for the device with ordinal n.
constexpr std::uint64_t kHostBit = std::uint64_t{1} << 63;

}  // namespace cuwarden::simulated_gpu
