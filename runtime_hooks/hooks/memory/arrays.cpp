// CUDA arrays, plain and mipmapped. The driver does not tell an array's size, so cuwarden works it
// out from the descriptor; the alignment that the driver adds is missing from it.
#include <algorithm>

#include "runtime_hooks/hooks/call/hooks.hpp"

namespace cuwarden::hooks {
namespace {

// Returns the bits of one channel; 0 for a format that this function does not know.
std::uint64_t channel_bits(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 32;
    case CU_AD_FORMAT_NV12:
      return 12;  // 8 of luma and 4 of chroma a pixel
    default:
      return 0;
  }
}

// Returns the bits of one texel; 0 for an unknown format. Normalised and block-compressed formats
// name their number of channels themselves, so `channels` does not matter for them.
std::uint64_t texel_bits(CUarray_format format, unsigned channels) {
  if (const std::uint64_t bits = channel_bits(format); bits != 0)
    return format == CU_AD_FORMAT_NV12 ? bits : bits * channels;
  switch (format) {
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X1:
      return 8;
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
      return 16;
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X4:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2:
      return 32;
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X4:
      return 64;
    case CU_AD_FORMAT_BC1_UNORM:
    case CU_AD_FORMAT_BC1_UNORM_SRGB:
    case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
      return 4;
    case CU_AD_FORMAT_BC2_UNORM:
    case CU_AD_FORMAT_BC2_UNORM_SRGB:
    case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB:
    case CU_AD_FORMAT_BC5_UNORM:
    case CU_AD_FORMAT_BC5_SNORM:
    case CU_AD_FORMAT_BC6H_UF16:
    case CU_AD_FORMAT_BC6H_SF16:
    case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
      return 8;
    default:
      return 0;
  }
}

std::uint64_t bytes_of(std::uint64_t width, std::uint64_t height, std::uint64_t depth,
                       CUarray_format format, unsigned channels) {
  const std::uint64_t texels =
      width * std::max<std::uint64_t>(height, 1) * std::max<std::uint64_t>(depth, 1);
  return (texels * texel_bits(format, channels) + 7) / 8;
}

// Returns false for sparse and deferred arrays: they have no memory until handles are mapped into
// them.
bool has_memory(unsigned flags) {
  return (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

template <class Handle, class RealCall>
CUresult created(HookedCall& call, Space space, const Handle* handle, std::uint64_t bytes,
                 RealCall real_call) {
  Allocation array{.kind = Kind::array, .space = space, .bytes = bytes, .owned_by_context = true};
  const CUresult result = call.allocate(array, real_call);
  if (result == CUDA_SUCCESS) array.address = reinterpret_cast<std::uint64_t>(*handle);
  call.allocated(result, array);
  return result;
}

template <class Handle, class RealCall>
CUresult destroyed(HookedCall& call, Space space, Handle handle, RealCall real_call) {
  return call.freed(space, reinterpret_cast<std::uint64_t>(handle), real_call);
}

template <class Descriptor>
std::uint64_t bytes_of_2d(const Descriptor* d) {
  return d == nullptr ? 0 : bytes_of(d->Width, d->Height, 1, d->Format, d->NumChannels);
}

template <class Descriptor>
std::uint64_t bytes_of_3d(const Descriptor* d) {
  if (d == nullptr || !has_memory(d->Flags)) return 0;
  return bytes_of(d->Width, d->Height, d->Depth, d->Format, d->NumChannels);
}

// Returns the bytes of a mipmapped array. Each level halves every extent, but the number of layers
// of a layered array stays.
std::uint64_t bytes_of_levels(const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
  if (d == nullptr || !has_memory(d->Flags)) return 0;
  const bool layered = (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  std::uint64_t total = 0;
  for (unsigned level = 0; level < std::min(levels, 64u); ++level) {
    const auto shrink = [level](std::uint64_t extent) {
      return extent == 0 ? 0 : std::max<std::uint64_t>(extent >> level, 1);
    };
    total += bytes_of(shrink(d->Width), shrink(d->Height), layered ? d->Depth : shrink(d->Depth),
                      d->Format, d->NumChannels);
  }
  return total;
}

}  // namespace

#define OF_ARRAY CUWARDEN_HOOK_BY
#include "runtime_hooks/driver/hooks.def"

}  // namespace cuwarden::hooks
