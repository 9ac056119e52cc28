// CUDA arrays (CUarray) of the simulated driver. Real devices store them in an opaque layout; here
// they are stored row by row without padding.
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// An array. Its handle, a CUarray, is its address.
struct Array {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  Context* context = nullptr;  // The context in which the array was made.
  CUdeviceptr data = 0;        // Address of the first element.
  std::size_t size = 0;        // Bytes of all elements.
  // True for a level of a mipmapped array. The program must not destroy a level: it ends with the
  // mipmapped array.
  bool level = false;

  // Bytes of an element, with all its channels.
  std::size_t element() const;
  // Bytes of a row.
  std::size_t row() const { return shape.Width * element(); }
  // Number of rows of a slice; 1 for a one-dimensional array.
  std::size_t rows() const { return shape.Height > 0 ? shape.Height : 1; }
  // Number of slices (layers); 1 unless the array is three-dimensional.
  std::size_t slices() const { return shape.Depth > 0 ? shape.Depth : 1; }
};

// A mipmapped array. Its handle, a CUmipmappedArray, is its address.
struct MipmappedArray {
  std::vector<Array*> levels;  // From the largest to the smallest; not owned.
};

// Returns all arrays of the process, with the levels of mipmapped arrays. To be used under the
// simulator's lock.
Handles<Array>& arrays();
// Returns all mipmapped arrays of the process.
Handles<MipmappedArray>& mipmapped_arrays();

}  // namespace cuwarden::simulated_gpu
