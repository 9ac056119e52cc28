// Entry points for fills, prefetches and advice.
#include <cstdint>

#include "tools/simulated_gpu/device/work.hpp"
#include "tools/simulated_gpu/driver/entry.hpp"

namespace cuwarden::simulated_gpu {
namespace {

template <typename Value>
void fill_row(CUdeviceptr start, std::size_t width, unsigned value) {
  auto* const row = reinterpret_cast<Value*>(start);
  for (std::size_t x = 0; x < width; ++x) row[x] = static_cast<Value>(value);
}

CUdeviceptr row_start(const CUDA_MEMSET_NODE_PARAMS& rows, std::size_t y) {
  return rows.dst + y * rows.pitch;
}

bool writable(const CUDA_MEMSET_NODE_PARAMS& rows) {
  for (std::size_t y = 0; y < rows.height; ++y) {
    if (!accessible(simulator(), row_start(rows, y), rows.width * rows.elementSize, true, false))
      return false;
  }
  return true;
}

template <typename Value>
CUresult fill(CUdeviceptr start, std::size_t pitch, Value value, std::size_t width,
              std::size_t height, CUstream handle) {
  InStream at(handle);
  SIM_TRY(at.error);
  const CUDA_MEMSET_NODE_PARAMS rows{start, pitch, value, sizeof(Value), width, height};
  if (!is_filling(rows) || (!at.stream->capture && !writable(rows)))
    return CUDA_ERROR_INVALID_VALUE;
  if (!at.stream->capture) SIM_TRY(take_memory_for_copies(*at.context));
  return submit(*at.stream, NodeKind::fill, CU_GRAPH_NODE_TYPE_MEMSET,
                [rows] { return fill_rows(rows); });
}

}  // namespace

bool is_filling(const CUDA_MEMSET_NODE_PARAMS& rows) {
  const unsigned element = rows.elementSize;
  return (element == 1 || element == 2 || element == 4) && rows.dst % element == 0 &&
         (rows.height <= 1 || rows.pitch >= rows.width * element);
}

CUresult fill_rows(const CUDA_MEMSET_NODE_PARAMS& rows) {
  if (!writable(rows)) return CUDA_ERROR_INVALID_VALUE;
  const auto fill_one = rows.elementSize == 1   ? fill_row<std::uint8_t>
                        : rows.elementSize == 2 ? fill_row<std::uint16_t>
                                                : fill_row<std::uint32_t>;
  for (std::size_t y = 0; y < rows.height; ++y)
    fill_one(row_start(rows, y), rows.width, rows.value);
  return CUDA_SUCCESS;
}

namespace entry {

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return fill(to, count, value, count, 1, nullptr);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return fill(to, 2 * count, value, count, 1, nullptr);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return fill(to, 4 * count, value, count, 1, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill(to, count, value, count, 1, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill(to, 2 * count, value, count, 1, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return fill(to, 4 * count, value, count, 1, stream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return fill(to, pitch, value, width, height, nullptr);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return fill(to, pitch, value, width, height, nullptr);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height) {
  return fill(to, pitch, value, width, height, nullptr);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return fill(to, pitch, value, width, height, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  return fill(to, pitch, value, width, height, stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
  return fill(to, pitch, value, width, height, stream);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice, CUstream handle) {
  InStream at(handle);
  SIM_TRY(at.error);
  const Range* range = at.sim.ranges.around(address);
  const bool managed = range != nullptr && range->kind == RangeKind::managed;
  return managed && size > 0 && size <= range->start + range->requested - address
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation, unsigned int,
                               CUstream stream) {
  return entry::cuMemPrefetchAsync(address, size, 0, stream);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise, CUdevice) {
  return entry::cuMemPrefetchAsync(address, size, 0, nullptr);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise, CUmemLocation) {
  return entry::cuMemPrefetchAsync(address, size, 0, nullptr);
}

// The arguments are more than fit into registers, so that a caller's mistake is noticed.
CUresult cuFutureFill(CUdeviceptr start, size_t bytes, unsigned int value, int one, int two,
                      int three, int four, double half, float quarter) {
  if (one != 1 || two != 2 || three != 3 || four != 4 || half != 0.5 || quarter != 0.25f)
    return CUDA_ERROR_INVALID_VALUE;
  return fill(start, 0, static_cast<unsigned char>(value), bytes, 1, nullptr);
}

}  // namespace entry
}  // namespace cuwarden::simulated_gpu
