// The interface of a third-party library that comes without sources and without debug info.
#pragma once

#include <cstddef>

extern "C" {
// Results of vendor_filter_sharpen().
enum VendorFilterResult {
  VENDOR_FILTER_DONE = 0,
  VENDOR_FILTER_ODD_WIDTH = 1,    // The library filters only images whose width is even.
  VENDOR_FILTER_CUDA_FAILED = 2,  // A call of CUDA failed, such as for lack of memory.
};

// Device memory that the library keeps for later calls.
struct VendorFilterMemory {
  std::size_t buffers;  // Number of the library's buffers, including the work space.
  std::size_t bytes;    // Bytes of these buffers together.
};

// Sharpens an image. `pixels` and `sharpened` point to `width` times `height` bytes of host memory,
// a byte a pixel. The first call allocates device memory for a work space, which the library keeps.
// The library also keeps up to three buffers for the intermediate images of later calls. Not
// thread-safe.
VendorFilterResult vendor_filter_sharpen(const unsigned char* pixels, std::size_t width,
                                         std::size_t height, unsigned char* sharpened);
// Returns the memory that the library keeps now.
VendorFilterMemory vendor_filter_memory();
// Returns the library's version, such as "2.3.0".
const char* vendor_filter_version();
}
