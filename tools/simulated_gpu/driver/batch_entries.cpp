// Entry points for batches of copies.
#include <algorithm>

#include "tools/simulated_gpu/device/arrays.hpp"
#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

#if CUDA_VERSION >= 13000
namespace cuwarden::simulated_gpu {
namespace {

bool is_order(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

// Finds the stream of a batch. The legacy default stream is refused.
CUresult find_batch_stream(InContext& at, CUstream handle, Stream*& stream) {
  SIM_TRY(find_stream(*at.context, handle, stream));
  return stream == &stream->context->legacy ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult copy_all(Stream& stream, const std::vector<CUDA_MEMCPY3D>& copies) {
  for (const CUDA_MEMCPY3D& copy : copies)
    SIM_TRY(submit(stream, NodeKind::copy, CU_GRAPH_NODE_TYPE_MEMCPY,
                   [copy] { return copy_box(copy); }));
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D row(CUdeviceptr to, CUdeviceptr from, std::size_t size) {
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  box.srcDevice = from;
  box.dstDevice = to;
  box.WidthInBytes = size;
  box.Height = box.Depth = 1;
  return box;
}

// Returns the bytes of an array's element. Returns 1 for a pointer, whose element is that of the
// other side, and 0 for an unknown operand.
std::size_t element_of(const CUmemcpy3DOperand& operand) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER) return 1;
  if (operand.type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return 0;
  const Array* array = arrays().find(operand.op.array.array);
  return array != nullptr ? array->element() : 0;
}

// One side of a copy in the driver's terms.
struct CopyEnd {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  CUdeviceptr address = 0;
  CUarray array = nullptr;
  std::size_t x = 0, y = 0, z = 0, pitch = 0, height = 0;
};

CUresult end_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent, std::size_t element,
                CopyEnd& end) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const auto& wanted = operand.op.array;
    end = {.type = CU_MEMORYTYPE_ARRAY,
           .array = wanted.array,
           .x = wanted.offset.x * element,
           .y = wanted.offset.y,
           .z = wanted.offset.z};
    return CUDA_SUCCESS;
  }
  const auto& wanted = operand.op.ptr;
  if ((wanted.rowLength != 0 && wanted.rowLength < extent.width) ||
      (wanted.layerHeight != 0 && wanted.layerHeight < extent.height))
    return CUDA_ERROR_INVALID_VALUE;
  end = {.address = wanted.ptr,
         .pitch = (wanted.rowLength != 0 ? wanted.rowLength : extent.width) * element,
         .height = wanted.layerHeight != 0 ? wanted.layerHeight : extent.height};
  return CUDA_SUCCESS;
}

CUresult box_of(const CUDA_MEMCPY3D_BATCH_OP& op, CUDA_MEMCPY3D& box) {
  const std::size_t from_element = element_of(op.src), to_element = element_of(op.dst),
                    element = std::max(from_element, to_element);
  const bool both_arrays =
      op.src.type == op.dst.type && op.src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
  if (from_element == 0 || to_element == 0 || (both_arrays && from_element != to_element) ||
      op.extent.width == 0 || op.extent.height == 0 || op.extent.depth == 0 ||
      !is_order(op.srcAccessOrder))
    return CUDA_ERROR_INVALID_VALUE;
  CopyEnd from, to;
  SIM_TRY(end_of(op.src, op.extent, element, from));
  SIM_TRY(end_of(op.dst, op.extent, element, to));
  box = {};
  box.srcXInBytes = from.x, box.srcY = from.y, box.srcZ = from.z;
  box.srcMemoryType = from.type, box.srcDevice = from.address, box.srcArray = from.array;
  box.srcPitch = from.pitch, box.srcHeight = from.height;
  box.dstXInBytes = to.x, box.dstY = to.y, box.dstZ = to.z;
  box.dstMemoryType = to.type, box.dstDevice = to.address, box.dstArray = to.array;
  box.dstPitch = to.pitch, box.dstHeight = to.height;
  box.WidthInBytes = op.extent.width * element;
  box.Height = op.extent.height;
  box.Depth = op.extent.depth;
  return CUDA_SUCCESS;
}

}  // namespace

namespace entry {

CUresult cuMemcpyBatchAsync_v2(InContext& at, CUdeviceptr* to, CUdeviceptr* from, size_t* sizes,
                               size_t count, CUmemcpyAttributes* attributes, size_t* first_of,
                               size_t kinds, CUstream handle) {
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0 || attributes == nullptr ||
      first_of == nullptr || kinds == 0 || kinds > count)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < kinds; ++i) {
    if (!is_order(attributes[i].srcAccessOrder) || first_of[i] >= count ||
        (i == 0 ? first_of[0] != 0 : first_of[i] <= first_of[i - 1]))
      return CUDA_ERROR_INVALID_VALUE;
  }
  Stream* stream = nullptr;
  SIM_TRY(find_batch_stream(at, handle, stream));
  std::vector<CUDA_MEMCPY3D> copies;
  for (size_t i = 0; i < count; ++i) copies.push_back(row(to[i], from[i], sizes[i]));
  return copy_all(*stream, copies);
}

CUresult cuMemcpy3DBatchAsync_v2(InContext& at, size_t count, CUDA_MEMCPY3D_BATCH_OP* ops,
                                 unsigned long long flags, CUstream handle) {
  if (ops == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* stream = nullptr;
  SIM_TRY(find_batch_stream(at, handle, stream));
  std::vector<CUDA_MEMCPY3D> copies(count);
  for (size_t i = 0; i < count; ++i) SIM_TRY(box_of(ops[i], copies[i]));
  return copy_all(*stream, copies);
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
#endif
