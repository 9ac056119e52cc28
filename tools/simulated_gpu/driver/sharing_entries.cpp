// Entry points for IPC handles, exported and imported physical handles, and external memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tools/simulated_gpu/device/virtual_memory.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"
#include "tools/simulated_gpu/hardware/sharing.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// The content of an IPC handle's 64 bytes.
struct Ticket {
  char magic[8];
  int process;
  int descriptor;
  int device;
  int reserved;
  std::uint64_t size;       // Size of the file.
  std::uint64_t offset;     // Offset of the allocation in the file.
  std::uint64_t requested;  // Size of the allocation.
  std::uint64_t buffer_id;
};
static_assert(sizeof(Ticket) <= sizeof(CUipcMemHandle));
constexpr char kMagic[8] = {'s', 'i', 'm', '-', 'g', 'p', 'u', '1'};

struct ExternalMemory {
  int descriptor = -1;
  std::size_t size = 0;
};

Handles<ExternalMemory>& external_memory() {
  static auto* const made = new Handles<ExternalMemory>;
  return *made;
}

// Maps a file that holds another process's memory, and enters it as an imported range.
CUresult map_file(InContext& at, int descriptor, std::size_t file_size, std::size_t offset,
                  std::size_t size, unsigned flags, CUdeviceptr& out, unsigned long long source) {
  void* base =
      mmap(nullptr, file_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.start = reinterpret_cast<CUdeviceptr>(base) + offset;
  range.requested = size;
  range.held = file_size;
  range.lead = offset;
  range.kind = RangeKind::imported;
  range.flags = flags;
  range.context = at.context;
  range.device = at.context->device;
  range.source = source;
  at.sim.ranges.insert(range);
  out = range.start;
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuIpcGetMemHandle(InContext& at, CUipcMemHandle* out, CUdeviceptr address) {
  const Range* range = at.sim.ranges.around(address);
  if (out == nullptr || range == nullptr || range->kind != RangeKind::device ||
      range->flags == kArrayMemory)
    return CUDA_ERROR_INVALID_VALUE;
  const CUdeviceptr file_start = range->in_slab ? range->start / kPage * kPage : range->start;
  const std::size_t file_size = range->in_slab ? kPage : range->held;
  Ticket ticket{};
  std::memcpy(ticket.magic, kMagic, sizeof kMagic);
  ticket.process = getpid();
  ticket.descriptor = share_pages(file_start, file_size);
  if (ticket.descriptor < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  ticket.device = range->device->ordinal;
  ticket.size = file_size;
  ticket.offset = range->start - file_start;
  ticket.requested = range->requested;
  ticket.buffer_id = range->buffer_id;
  *out = {};
  std::memcpy(out->reserved, &ticket, sizeof ticket);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(InContext& at, CUdeviceptr* out, CUipcMemHandle handle,
                               unsigned int flags) {
  Ticket ticket{};
  std::memcpy(&ticket, handle.reserved, sizeof ticket);
  if (out == nullptr || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      std::memcmp(ticket.magic, kMagic, sizeof kMagic) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  // Only other processes may open a handle.
  if (ticket.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  const unsigned long long source =
      (static_cast<unsigned long long>(ticket.process) << 32) + ticket.buffer_id;
  const auto known = at.sim.ranges.where(
      [&](const Range& r) { return r.kind == RangeKind::imported && r.source == source; });
  if (!known.empty()) {
    ++at.sim.ranges.at(known.front())->references;
    *out = known.front();
    return CUDA_SUCCESS;
  }
  const std::string path =
      "/proc/" + std::to_string(ticket.process) + "/fd/" + std::to_string(ticket.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result =
      map_file(at, descriptor, ticket.size, ticket.offset, ticket.requested, 0, *out, source);
  close(descriptor);
  return result;
}

CUresult cuIpcCloseMemHandle(InContext& at, CUdeviceptr address) {
  Range* range = at.sim.ranges.at(address);
  if (range == nullptr || range->kind != RangeKind::imported || range->source == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (--range->references > 0) return CUDA_SUCCESS;
  release_range(*range);
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(Locked&, void* out, CUmemGenericAllocationHandle value,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  const PhysicalHandle* handle = physical_handles().find(value);
  if (out == nullptr || handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || handle->descriptor < 0)
    return CUDA_ERROR_INVALID_VALUE;
  const int exported = fcntl(handle->descriptor, F_DUPFD_CLOEXEC, 0);
  if (exported < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = exported;
  return CUDA_SUCCESS;
}

// Returns a descriptor by which other devices would reach the pages; here it is an empty file of
// that size.
CUresult cuMemGetHandleForAddressRange(InContext& at, void* out, CUdeviceptr address,
                                       std::size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long) {
  const auto whole_pages = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) - 1;
  if (out == nullptr || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || bytes == 0 ||
      ((address | bytes) & whole_pages) != 0 || at.sim.ranges.around(address) == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  const int made = memfd_create("simulated-gpu-dma-buf", MFD_CLOEXEC);
  if (made < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (ftruncate(made, static_cast<off_t>(bytes)) != 0) {
    close(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *static_cast<int*>(out) = made;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(InContext& at, CUmemGenericAllocationHandle* out,
                                        void* os_handle, CUmemAllocationHandleType type) {
  if (out == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  char name[128] = {};
  const std::string path = "/proc/self/fd/" + std::to_string(given);
  struct stat facts {};
  if (readlink(path.c_str(), name, sizeof name - 1) < 0 ||
      std::strstr(name, "simulated-gpu-handle") == nullptr || fstat(given, &facts) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const int descriptor = fcntl(given, F_DUPFD_CLOEXEC, 0);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, at.context->device->ordinal};
  PhysicalHandle* made =
      make_physical(properties, static_cast<std::size_t>(facts.st_size), descriptor, true);
  if (made == nullptr) {
    close(descriptor);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return CUDA_SUCCESS;
}

CUresult cuImportExternalMemory(InContext&, CUexternalMemory* out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  if (out == nullptr || description == nullptr || description->size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
    return CUDA_ERROR_NOT_SUPPORTED;
  struct stat facts {};
  if (fstat(description->handle.fd, &facts) != 0 ||
      static_cast<std::size_t>(facts.st_size) < description->size)
    return CUDA_ERROR_INVALID_VALUE;
  auto memory = std::make_unique<ExternalMemory>();
  memory->descriptor = description->handle.fd;  // The driver owns the descriptor from now on.
  memory->size = description->size;
  *out = reinterpret_cast<CUexternalMemory>(external_memory().add(std::move(memory)));
  return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(InContext& at, CUdeviceptr* out, CUexternalMemory handle,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description) {
  const ExternalMemory* memory = external_memory().find(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || description == nullptr || description->size == 0 ||
      description->offset > memory->size || description->size > memory->size - description->offset)
    return CUDA_ERROR_INVALID_VALUE;
  return map_file(at, memory->descriptor, memory->size, description->offset, description->size,
                  kImportedFreeable, *out, 0);
}

CUresult cuDestroyExternalMemory(InContext&, CUexternalMemory handle) {
  ExternalMemory* memory = external_memory().find(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  close(memory->descriptor);
  external_memory().remove(memory);
  return CUDA_SUCCESS;
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
