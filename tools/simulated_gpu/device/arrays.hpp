// CUDA arrays (CUarray) of the simulated driver. Real devices store them in an opaque layout; here
// they are stored row by row without padding.
#pragma once

#include "tools/simulated_gpu/device/state.hpp"

namespace cuwarden::simulated_gpu {

// A CUDA array of the simulated driver. Its handle, a CUarray, is the object's address.
struct Array {
  // Extents in elements (0: the array has no such dimension), element format, and number of
  // channels.
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  Context* context = nullptr;  // The context in which the array was made.
  CUdeviceptr data = 0;        // Device address of the first element.
  std::size_t size = 0;        // Bytes of all elements.
  // True if the array is a level of a mipmapped array. The program may not destroy a level by
  // itself; the end of the mipmapped array destroys all its levels.
  bool level = false;

  // Returns the bytes of an element of the array, with all its channels; 0 if the format is not
  // known.
  std::size_t element() const;
  // Returns the bytes of a row of the array.
  std::size_t row() const { return shape.Width * element(); }
  // Returns the number of rows in a slice of the array; 1 for a one-dimensional array.
  std::size_t rows() const { return shape.Height > 0 ? shape.Height : 1; }
  // Returns the number of slices (layers) of the array; 1 for an array of one or two dimensions.
  std::size_t slices() const { return shape.Depth > 0 ? shape.Depth : 1; }
};

// A mipmapped array: a list of arrays (levels), each with half the extents of the one before. Its
// handle, a CUmipmappedArray, is the object's address.
struct MipmappedArray {
  std::vector<Array*> levels;  // The levels, largest first. The table arrays() owns them.
};

// Returns the table of all arrays of the process, which also owns the levels of mipmapped arrays.
// Callers hold Simulator::mutex while they use the table.
Handles<Array>& arrays();
// Returns the table of all mipmapped arrays of the process. Callers hold Simulator::mutex while
// they use the table.
Handles<MipmappedArray>& mipmapped_arrays();

}  // namespace cuwarden::simulated_gpu
