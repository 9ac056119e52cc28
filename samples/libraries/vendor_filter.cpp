// The third-party library of library_leak: stripped of its debug info, and with only its interface
// exported. Version 2.3.0 has a bug: vendor_filter_sharpen() forgets the copy of an image whose
// width is odd. Version 2.3.1 frees that copy. Both keep a work space and a few buffers on purpose.
#include "samples/libraries/vendor_filter.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>

#define VENDOR_EXPORT [[gnu::visibility("default")]]

namespace {

constexpr std::size_t work_space_bytes = std::size_t{2} << 20;
// Buffers are a multiple of this size, so that images of about the same size share one.
constexpr std::size_t buffer_unit = std::size_t{64} << 10;

struct Buffer {
  void* address = nullptr;  // Null: the slot is empty.
  std::size_t bytes = 0;
  std::size_t last_use = 0;  // Number of the call that used the buffer last.
};

void* work_space = nullptr;
std::array<Buffer, 3> buffers;
std::size_t calls = 0;

// Allocates the work space, once. Returns false if there is no memory for it.
[[gnu::noinline]] bool has_work_space() {
  if (work_space != nullptr) return true;
  if (cudaMalloc(&work_space, work_space_bytes) != cudaSuccess) return false;
  return cudaMemset(work_space, 0, work_space_bytes) == cudaSuccess;
}

// Returns a buffer of at least `bytes` bytes that the library keeps; null if there is no memory for
// it. If all slots are full, the buffer that has not been used for longest is freed.
[[gnu::noinline]] void* intermediate_image(std::size_t bytes) {
  bytes = (bytes + buffer_unit - 1) / buffer_unit * buffer_unit;
  Buffer* buffer = std::find_if(buffers.begin(), buffers.end(),
                                [&](const Buffer& kept) { return kept.bytes == bytes; });
  if (buffer == buffers.end()) {
    buffer = std::min_element(
        buffers.begin(), buffers.end(),
        [](const Buffer& left, const Buffer& right) { return left.last_use < right.last_use; });
    cudaFree(buffer->address);
    *buffer = {};
    if (cudaMalloc(&buffer->address, bytes) != cudaSuccess) return nullptr;
    buffer->bytes = bytes;
  }
  buffer->last_use = calls;
  return buffer->address;
}

}  // namespace

extern "C" {

VENDOR_EXPORT VendorFilterResult vendor_filter_sharpen(const unsigned char* pixels,
                                                       std::size_t width, std::size_t height,
                                                       unsigned char* sharpened) {
  const std::size_t bytes = width * height;
  ++calls;
  if (!has_work_space()) return VENDOR_FILTER_CUDA_FAILED;
  void* image = nullptr;
  if (cudaMalloc(&image, bytes) != cudaSuccess) return VENDOR_FILTER_CUDA_FAILED;
  if (width % 2 != 0) {
#if VENDOR_FILTER_PATCH >= 1
    cudaFree(image);
#endif
    return VENDOR_FILTER_ODD_WIDTH;
  }
  void* const intermediate = intermediate_image(bytes);
  // A copy stands for the kernel that sharpens.
  const bool done =
      intermediate != nullptr &&
      cudaMemcpy(image, pixels, bytes, cudaMemcpyHostToDevice) == cudaSuccess &&
      cudaMemcpy(intermediate, image, bytes, cudaMemcpyDeviceToDevice) == cudaSuccess &&
      cudaMemcpy(sharpened, intermediate, bytes, cudaMemcpyDeviceToHost) == cudaSuccess;
  cudaFree(image);
  return done ? VENDOR_FILTER_DONE : VENDOR_FILTER_CUDA_FAILED;
}

VENDOR_EXPORT VendorFilterMemory vendor_filter_memory() {
  VendorFilterMemory memory{};
  if (work_space != nullptr) memory = {1, work_space_bytes};
  for (const Buffer& buffer : buffers) {
    memory.buffers += buffer.address == nullptr ? 0 : 1;
    memory.bytes += buffer.bytes;
  }
  return memory;
}

VENDOR_EXPORT const char* vendor_filter_version() {
  return VENDOR_FILTER_PATCH >= 1 ? "2.3.1" : "2.3.0";
}

}  // extern "C"
