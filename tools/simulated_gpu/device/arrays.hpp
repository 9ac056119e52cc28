// Arrays: opaque device memory, stored here row by row without padding.
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  Context* context = nullptr;
  CUdeviceptr data = 0;
  std::size_t size = 0;
  bool level = false;  // True for a level of a mipmapped array: that array owns the memory.

  // Bytes of an element, with all its channels.
  std::size_t element() const;
  // Bytes of a row.
  std::size_t row() const { return shape.Width * element(); }
  std::size_t rows() const { return shape.Height > 0 ? shape.Height : 1; }
  std::size_t slices() const { return shape.Depth > 0 ? shape.Depth : 1; }
};

struct MipmappedArray {
  std::vector<Array*> levels;
};

Handles<Array>& arrays();
Handles<MipmappedArray>& mipmapped_arrays();

}  // namespace cuwarden::simulated_gpu
