// Entry points for arrays, mipmapped arrays, and texture and surface objects.
#include <algorithm>

#include "tools/simulated_gpu/device/arrays.hpp"
#include "tools/simulated_gpu/device/contexts.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

// Returns the bytes of one channel of an array element.
std::size_t format_size(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

CUresult make_array(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& shape, Array*& made) {
  auto array = std::make_unique<Array>();
  array->shape = shape;
  array->context = &context;
  if (array->element() == 0 || shape.Width == 0) return CUDA_ERROR_INVALID_VALUE;
  std::size_t area = 0;
  if (__builtin_mul_overflow(array->row(), array->rows(), &area) ||
      __builtin_mul_overflow(area, array->slices(), &array->size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Range range;
  range.requested = array->size;
  range.context = &context;
  range.device = context.device;
  range.start = take_linear(context, array->size, range.in_slab, range.held);
  if (range.start == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  range.flags = kArrayMemory;
  array->data = range.start;
  simulator().ranges.insert(range);
  made = arrays().add(std::move(array));
  return CUDA_SUCCESS;
}

CUresult drop_array(Array& array) {
  Range* range = simulator().ranges.at(array.data);
  arrays().remove(&array);
  if (array.context->destroyed || range == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  release_range(*range);
  return CUDA_SUCCESS;
}

// A texture or surface object (CUtexObject, CUsurfObject). Its handle is the object's address.
struct View {
  Context* context = nullptr;  // The context in which the object was made; not owned, never null.
};

Handles<View>& textures() {
  static auto* const made = new Handles<View>;
  return *made;
}

Handles<View>& surfaces() {
  static auto* const made = new Handles<View>;
  return *made;
}

// True if the memory of which a texture object is to be made is known.
bool is_known(Simulator& sim, const CUDA_RESOURCE_DESC& memory) {
  switch (memory.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return arrays().find(memory.res.array.hArray) != nullptr;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return mipmapped_arrays().find(memory.res.mipmap.hMipmappedArray) != nullptr;
    case CU_RESOURCE_TYPE_LINEAR:
      return sim.ranges.around(memory.res.linear.devPtr) != nullptr;
    case CU_RESOURCE_TYPE_PITCH2D:
      return sim.ranges.around(memory.res.pitch2D.devPtr) != nullptr;
    default:
      return false;
  }
}

// Makes an object of the current context, and enters it in `views`. Sets `out` to the handle;
// leaves it unchanged if the device has no memory for the object.
CUresult make_view(InContext& at, Handles<View>& views, unsigned long long* out) {
  if (!take_object_memory(*at.context, at.context->view_memory, kViewCost))
    return CUDA_ERROR_OUT_OF_MEMORY;
  auto view = std::make_unique<View>();
  view->context = at.context;
  *out = reinterpret_cast<unsigned long long>(views.add(std::move(view)));
  return CUDA_SUCCESS;
}

CUresult drop_view(Handles<View>& views, unsigned long long handle) {
  View* const view = views.find(handle);
  if (view == nullptr) return CUDA_ERROR_INVALID_VALUE;
  views.remove(view);
  view->context->view_memory.used_bytes -= kViewCost;
  return CUDA_SUCCESS;
}

}  // namespace

std::size_t Array::element() const { return format_size(shape.Format) * shape.NumChannels; }

Handles<Array>& arrays() {
  static auto* const made = new Handles<Array>;
  return *made;
}

Handles<MipmappedArray>& mipmapped_arrays() {
  static auto* const made = new Handles<MipmappedArray>;
  return *made;
}

namespace entry {

CUresult cuArray3DCreate_v2(InContext& at, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  if (out == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  Array* made = nullptr;
  SIM_TRY(make_array(*at.context, *shape, made));
  *out = reinterpret_cast<CUarray>(made);
  return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(InContext& at, CUarray* out, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide{shape->Width,  shape->Height,      0,
                                     shape->Format, shape->NumChannels, 0};
  return entry::cuArray3DCreate_v2(at, out, &wide);
}

CUresult cuArrayCreate(InContext& at, CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide{shape->Width,  shape->Height,      0,
                                     shape->Format, shape->NumChannels, 0};
  return entry::cuArray3DCreate_v2(at, out, &wide);
}

CUresult cuArray3DCreate(InContext& at, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide{shape->Width,  shape->Height,      shape->Depth,
                                     shape->Format, shape->NumChannels, shape->Flags};
  return entry::cuArray3DCreate_v2(at, out, &wide);
}

CUresult cuArray3DGetDescriptor_v2(InContext&, CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray handle) {
  const Array* array = arrays().find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *shape = array->shape;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(InContext& at, CUDA_ARRAY_DESCRIPTOR* shape, CUarray handle) {
  CUDA_ARRAY3D_DESCRIPTOR wide{};
  SIM_TRY(entry::cuArray3DGetDescriptor_v2(at, &wide, handle));
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *shape = {wide.Width, wide.Height, wide.Format, wide.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(InContext&, CUDA_ARRAY_MEMORY_REQUIREMENTS* needs,
                                      CUarray handle, CUdevice) {
  const Array* array = arrays().find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (needs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *needs = {};
  needs->size = round_up(array->size, kSlabStep);
  needs->alignment = kSlabStep;
  return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(InContext& at, CUarray handle) {
  const auto find = [&] { return arrays().find(handle); };
  Array* array = find();
  if (array == nullptr || array->level) return CUDA_ERROR_INVALID_HANDLE;
  SIM_TRY(refuse_under_capture(at.sim));
  wait_for_work(at.lock, *at.context);
  array = find();
  return array == nullptr ? CUDA_ERROR_INVALID_HANDLE : drop_array(*array);
}

CUresult cuMipmappedArrayCreate(InContext& at, CUmipmappedArray* out,
                                const CUDA_ARRAY3D_DESCRIPTOR* shape, unsigned int levels) {
  if (out == nullptr || shape == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_under_capture(at.sim));
  auto mipmapped = std::make_unique<MipmappedArray>();
  CUDA_ARRAY3D_DESCRIPTOR level = *shape;
  const auto half = [](std::size_t& extent) { extent = extent > 1 ? extent / 2 : extent; };
  for (unsigned i = 0; i < levels; ++i) {
    Array* made = nullptr;
    if (const CUresult result = make_array(*at.context, level, made); result != CUDA_SUCCESS) {
      for (Array* before : mipmapped->levels) drop_array(*before);
      return result;
    }
    made->level = true;
    mipmapped->levels.push_back(made);
    half(level.Width);
    half(level.Height);
    half(level.Depth);
  }
  *out = reinterpret_cast<CUmipmappedArray>(mipmapped_arrays().add(std::move(mipmapped)));
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(InContext&, CUarray* out, CUmipmappedArray handle,
                                  unsigned int level) {
  MipmappedArray* mipmapped = mipmapped_arrays().find(handle);
  if (mipmapped == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || level >= mipmapped->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUarray>(mipmapped->levels[level]);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(InContext& at, CUmipmappedArray handle) {
  MipmappedArray* mipmapped = mipmapped_arrays().find(handle);
  if (mipmapped == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  mipmapped_arrays().remove(mipmapped);
  wait_for_work(at.lock, *at.context);
  CUresult result = CUDA_SUCCESS;
  for (Array* level : mipmapped->levels) result = std::max(result, drop_array(*level));
  return result;
}

CUresult cuTexObjectCreate(InContext& at, CUtexObject* out, const CUDA_RESOURCE_DESC* memory,
                           const CUDA_TEXTURE_DESC* reading, const CUDA_RESOURCE_VIEW_DESC*) {
  if (out == nullptr || memory == nullptr || reading == nullptr || !is_known(at.sim, *memory))
    return CUDA_ERROR_INVALID_VALUE;
  return make_view(at, textures(), out);
}

CUresult cuTexObjectDestroy(InContext&, CUtexObject handle) {
  return drop_view(textures(), handle);
}

CUresult cuSurfObjectCreate(InContext& at, CUsurfObject* out, const CUDA_RESOURCE_DESC* memory) {
  if (out == nullptr || memory == nullptr || memory->resType != CU_RESOURCE_TYPE_ARRAY ||
      !is_known(at.sim, *memory))
    return CUDA_ERROR_INVALID_VALUE;
  return make_view(at, surfaces(), out);
}

CUresult cuSurfObjectDestroy(InContext&, CUsurfObject handle) {
  return drop_view(surfaces(), handle);
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
