// Makes and ends physical handles.
#include "tools/simulated_gpu/device/virtual_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "tools/simulated_gpu/device/device_memory.hpp"
#include "tools/simulated_gpu/device/simulator.hpp"

namespace cuwarden::simulated_gpu {

Handles<PhysicalHandle>& physical_handles() {
  static auto* const made = new Handles<PhysicalHandle>;
  return *made;
}

PhysicalHandle* make_physical(const CUmemAllocationProp& properties, std::size_t size,
                              int descriptor, bool imported) {
  auto handle = std::make_unique<PhysicalHandle>();
  handle->properties = properties;
  handle->size = size;
  handle->descriptor = descriptor;
  handle->imported = imported;
  if (properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    handle->device = simulator().device(properties.location.id);
  }
  if (handle->device != nullptr && !imported && !charge_device(*handle->device, size))
    return nullptr;
  // Shared memory without a descriptor: a program's descriptors and file size limits do not affect
  // it, and mremap can map it again.
  const int flags = MAP_SHARED | MAP_NORESERVE | (descriptor < 0 ? MAP_ANONYMOUS : 0);
  handle->window = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (handle->window == MAP_FAILED) {
    if (handle->device != nullptr && !imported) handle->device->refund(size);
    return nullptr;
  }
  return physical_handles().add(std::move(handle));
}

void drop_physical(PhysicalHandle& handle) {
  if (handle.references > 0 || handle.mappings > 0) return;
  munmap(handle.window, handle.size);
  handle.window = nullptr;
  if (handle.descriptor >= 0) close(handle.descriptor);
  handle.descriptor = -1;
  if (handle.device != nullptr && !handle.imported) handle.device->refund(handle.size);
}

}  // namespace cuwarden::simulated_gpu
