// Entry points for copies. The bytes are really moved.
#include <bit>
#include <cstring>

#include "tools/simulated_gpu/device/arrays.hpp"
#include "tools/simulated_gpu/device/virtual_memory.hpp"
#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {

namespace {

// True if the bytes may be read, or written if `write`, by a device or host whose bit is set in
// `bits`. With `host_allowed`, memory outside the device's address space may be accessed, too.
bool accessible_by(std::uint64_t bits, Simulator& sim, CUdeviceptr address, std::size_t size,
                   bool write, bool host_allowed) {
  while (size > 0) {
    const Range* range = sim.ranges.around(address);
    if (range == nullptr) {
      if (!host_allowed) return false;
      for (const auto& device : sim.devices) {
        if (device->arena.contains(address)) return false;
      }
      return !sim.reserved(address);
    }
    const std::size_t left = range->start + range->requested - address;
    if (range->kind == RangeKind::mapping) {
      if (((write ? range->writable : range->readable) & bits) == 0) return false;
      if (left < size) {  // The access continues in the next mapping.
        address += left;
        size -= left;
        continue;
      }
    }
    return size <= left;
  }
  return true;
}

}  // namespace

bool accessible(Simulator& sim, CUdeviceptr address, std::size_t size, bool write,
                bool host_allowed) {
  Context* context = nullptr;
  if (current_context(context) != CUDA_SUCCESS) return false;
  return accessible_by(std::uint64_t{1} << context->device->ordinal, sim, address, size, write,
                       host_allowed);
}

namespace {

// Owner of one side of a copy. `owned` is device memory that is accessed by its own device,
// whichever device is current.
enum class Side { host, device, any, owned };

// A copy of consecutive bytes.
struct Plain {
  CUdeviceptr to;
  Side to_side;
  CUdeviceptr from;
  Side from_side;
  std::size_t size;
};

CUresult check(Simulator& sim, CUdeviceptr address, Side side, std::size_t size, bool write) {
  if (size == 0 || side == Side::host)
    return address == 0 && size > 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  const bool reached = side == Side::owned
                           ? accessible_by(~kHostBit, sim, address, size, write, true)
                           : accessible(sim, address, size, write, side == Side::any);
  return reached && address != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check(Simulator& sim, const Plain& copy) {
  SIM_TRY(check(sim, copy.to, copy.to_side, copy.size, true));
  return check(sim, copy.from, copy.from_side, copy.size, false);
}

// A copy on a device is made by a kernel of the driver's.
CUresult take_memory_for(Context& context, const Plain& copy) {
  return copy.to_side == Side::device && copy.from_side == Side::device
             ? take_memory_for_copies(context)
             : CUDA_SUCCESS;
}

CUresult copy_now(const Plain& copy) {
  std::memmove(reinterpret_cast<void*>(copy.to), reinterpret_cast<const void*>(copy.from),
               copy.size);
  return CUDA_SUCCESS;
}

CUresult synchronous(const Plain& copy) {
  InContext at;
  SIM_TRY(at.error);
  SIM_TRY(check(at.sim, copy));
  SIM_TRY(refuse_under_capture(at.sim));
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, nullptr, stream));
  SIM_TRY(take_memory_for(*at.context, copy));
  wait_for(at.lock, *stream);
  SIM_TRY(check(at.sim, copy));
  return copy_now(copy);
}

CUresult asynchronous(const Plain& copy, CUstream handle) {
  InStream at(handle);
  SIM_TRY(at.error);
  // Memory that a captured graph allocates does not exist yet: the copy is checked when the graph
  // runs.
  if (!at.stream->capture) {
    SIM_TRY(check(at.sim, copy));
    SIM_TRY(take_memory_for(*at.context, copy));
  }
  return submit(*at.stream, NodeKind::copy, CU_GRAPH_NODE_TYPE_MEMCPY, [copy] {
    SIM_TRY(check(simulator(), copy));
    return copy_now(copy);
  });
}

CUdeviceptr number(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// One side of a copy of boxes: base address, bytes from row to row, bytes from slice to slice.
struct Box {
  CUdeviceptr base = 0;
  std::size_t pitch = 0;
  std::size_t slice = 0;
  Side side = Side::device;
};

CUresult resolve(CUmemorytype type, const void* host, CUdeviceptr device, CUarray handle,
                 std::size_t x, std::size_t y, std::size_t z, std::size_t pitch, std::size_t height,
                 std::size_t width, Box& box) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    const Array* array = arrays().find(handle);
    if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    box = {array->data, array->row(), array->row() * array->rows(), Side::device};
  } else {
    const bool on_host = type == CU_MEMORYTYPE_HOST;
    box.base = on_host ? number(host) : device;
    box.pitch = pitch != 0 ? pitch : width;
    box.slice = box.pitch * (height != 0 ? height : 1);
    box.side = on_host ? Side::host : type == CU_MEMORYTYPE_DEVICE ? Side::device : Side::any;
  }
  box.base += x + y * box.pitch + z * box.slice;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult copy_box(const CUDA_MEMCPY3D& c) {
  Box from, to;
  SIM_TRY(resolve(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, c.srcXInBytes, c.srcY,
                  c.srcZ, c.srcPitch, c.srcHeight, c.WidthInBytes, from));
  SIM_TRY(resolve(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, c.dstXInBytes, c.dstY,
                  c.dstZ, c.dstPitch, c.dstHeight, c.WidthInBytes, to));
  if (c.WidthInBytes > from.pitch || c.WidthInBytes > to.pitch) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t z = 0; z < c.Depth; ++z) {
    for (std::size_t y = 0; y < c.Height; ++y) {
      const Plain row{to.base + z * to.slice + y * to.pitch, to.side,
                      from.base + z * from.slice + y * from.pitch, from.side, c.WidthInBytes};
      SIM_TRY(check(simulator(), row));
      copy_now(row);
    }
  }
  return CUDA_SUCCESS;
}

namespace {

CUresult box_synchronous(const CUDA_MEMCPY3D& copy) {
  InContext at;
  SIM_TRY(at.error);
  SIM_TRY(refuse_under_capture(at.sim));
  Stream* stream = nullptr;
  SIM_TRY(find_stream(*at.context, nullptr, stream));
  wait_for(at.lock, *stream);
  return copy_box(copy);
}

CUresult box_asynchronous(const CUDA_MEMCPY3D& copy, CUstream handle) {
  InStream at(handle);
  SIM_TRY(at.error);
  return submit(*at.stream, NodeKind::copy, CU_GRAPH_NODE_TYPE_MEMCPY,
                [copy] { return copy_box(copy); });
}

CUDA_MEMCPY3D deepen(const CUDA_MEMCPY2D& c) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = c.srcXInBytes;
  box.srcY = c.srcY;
  box.srcMemoryType = c.srcMemoryType;
  box.srcHost = c.srcHost;
  box.srcDevice = c.srcDevice;
  box.srcArray = c.srcArray;
  box.srcPitch = c.srcPitch;
  box.dstXInBytes = c.dstXInBytes;
  box.dstY = c.dstY;
  box.dstMemoryType = c.dstMemoryType;
  box.dstHost = c.dstHost;
  box.dstDevice = c.dstDevice;
  box.dstArray = c.dstArray;
  box.dstPitch = c.dstPitch;
  box.WidthInBytes = c.WidthInBytes;
  box.Height = c.Height;
  box.Depth = 1;
  return box;
}

// Both structs have the same members, but for the contexts, which the copy does not need.
CUDA_MEMCPY3D without_peers(const CUDA_MEMCPY3D_PEER& c) { return std::bit_cast<CUDA_MEMCPY3D>(c); }

CUdeviceptr array_address(CUarray handle, std::size_t offset) {
  const Array* array = arrays().find(handle);
  return array != nullptr && offset < array->size ? array->data + offset : 0;
}

}  // namespace

namespace entry {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return synchronous({to, Side::any, from, Side::any, size});
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return asynchronous({to, Side::any, from, Side::any, size}, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  return synchronous({to, Side::device, number(from), Side::host, size});
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return asynchronous({to, Side::device, number(from), Side::host, size}, stream);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  return synchronous({number(to), Side::host, from, Side::device, size});
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return asynchronous({number(to), Side::host, from, Side::device, size}, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return asynchronous({to, Side::device, from, Side::device, size}, nullptr);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return asynchronous({to, Side::device, from, Side::device, size}, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size) {
  return synchronous({to, Side::owned, from, Side::owned, size});
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size,
                           CUstream stream) {
  return asynchronous({to, Side::owned, from, Side::owned, size}, stream);
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void* from, size_t size) {
  return synchronous({array_address(to, offset), Side::device, number(from), Side::host, size});
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void* from, size_t size,
                              CUstream stream) {
  return asynchronous({array_address(to, offset), Side::device, number(from), Side::host, size},
                      stream);
}

CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t offset, size_t size) {
  return synchronous({number(to), Side::host, array_address(from, offset), Side::device, size});
}

CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t offset, size_t size, CUstream stream) {
  return asynchronous({number(to), Side::host, array_address(from, offset), Side::device, size},
                      stream);
}

CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t size) {
  return synchronous({array_address(to, offset), Side::device, from, Side::device, size});
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t size) {
  return synchronous({to, Side::device, array_address(from, offset), Side::device, size});
}

CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                         size_t size) {
  return synchronous({array_address(to, to_offset), Side::device, array_address(from, from_offset),
                      Side::device, size});
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : box_synchronous(deepen(*copy));
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : box_synchronous(deepen(*copy));
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : box_asynchronous(deepen(*copy), stream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : box_synchronous(*copy);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : box_asynchronous(*copy, stream);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE : box_synchronous(without_peers(*copy));
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return copy == nullptr ? CUDA_ERROR_INVALID_VALUE
                         : box_asynchronous(without_peers(*copy), stream);
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
