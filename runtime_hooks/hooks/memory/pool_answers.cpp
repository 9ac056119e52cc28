#include "runtime_hooks/hooks/memory/pool_answers.hpp"

#include <optional>

#include "runtime_hooks/serving/pool_memory.hpp"

namespace cuwarden::hooks {
namespace {

// Buffer ids of blocks of cuwarden's pool begin here. The driver counts its own from 1 and stays
// below.
constexpr unsigned long long first_id_of_pool = 1ull << 62;

template <class Value>
CUresult put(void* to, Value value) {
  *static_cast<Value*>(to) = value;
  return CUDA_SUCCESS;
}

// Returns true if the driver's answer is about the address, rather than, for example, about a
// missing context or the end of the process.
bool is_about_address(CUresult answer) {
  return answer == CUDA_SUCCESS || answer == CUDA_ERROR_INVALID_VALUE ||
         answer == CUDA_ERROR_NOT_FOUND;
}

// Writes an attribute of a block of cuwarden's pool into `to`. Returns nothing if the driver's own
// answer is right. All Boolean attributes are left to the driver: they are equal for all blocks,
// and cuda.h does not say how wide a Boolean is.
std::optional<CUresult> attribute_of(const driver::RealDriver& real,
                                     const serving::PoolMemory& range,
                                     CUpointer_attribute attribute, CUdeviceptr address, void* to) {
  // A pinned block is cut from a larger piece of the driver's; all other attributes are the
  // piece's.
  if (range.is_pinned && attribute != CU_POINTER_ATTRIBUTE_RANGE_START_ADDR &&
      attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE && attribute != CU_POINTER_ATTRIBUTE_BUFFER_ID)
    return std::nullopt;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      // Stream-ordered memory belongs to no context.
      return put(to, range.kind == Kind::stream_ordered
                         ? nullptr
                         : reinterpret_cast<CUcontext>(range.context.value));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put<unsigned>(to, CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(to, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return CUDA_ERROR_INVALID_VALUE;  // the driver's answer for device memory
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(to, range.device.value);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(to, range.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<std::size_t>(to, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put<std::size_t>(to, range.mapped_bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(to, reinterpret_cast<void*>(range.mapped_start));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      // The driver has written a false of its own width; if true, only the first byte is changed.
      if (range.sync_memops) put<bool>(to, true);
      return std::nullopt;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      // The driver's id is that of the pages, which many blocks share.
      if (range.serial != 0) return put(to, first_id_of_pool + range.serial);
      [[fallthrough]];
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return address == range.start
                 ? std::nullopt
                 : std::optional(real.cuPointerGetAttribute(to, attribute, range.start));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(to, reinterpret_cast<CUmemoryPool>(range.memory_pool));
    default:
      return std::nullopt;
  }
}

}  // namespace

CUresult cuMemGetAddressRange_of_pool(const driver::RealDriver&, serving::ServingPools&,
                                      CUresult answer, CUdeviceptr_v1*, unsigned int*,
                                      CUdeviceptr_v1) noexcept {
  return answer;  // this old function knows 32-bit addresses only; cuwarden's pool has none
}

CUresult cuMemGetAddressRange_v2_of_pool(const driver::RealDriver&, serving::ServingPools& pools,
                                         CUresult answer, CUdeviceptr* pbase, size_t* psize,
                                         CUdeviceptr dptr) noexcept {
  if (!is_about_address(answer)) return answer;
  const auto range = serving::pool_memory_around(pools, dptr);
  if (!range) return serving::is_unused_in_pool(pools, dptr) ? CUDA_ERROR_NOT_FOUND : answer;
  if (pbase != nullptr) *pbase = range->start;
  if (psize != nullptr) *psize = range->bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute_of_pool(const driver::RealDriver& real, serving::ServingPools& pools,
                                       CUresult answer, void* data, CUpointer_attribute attribute,
                                       CUdeviceptr ptr) noexcept {
  if (data == nullptr || !is_about_address(answer)) return answer;
  const auto range = serving::pool_memory_around(pools, ptr);
  // An address of cuwarden's pool in no block gets the answer that the driver gives after a free.
  if (range) return attribute_of(real, *range, attribute, ptr, data).value_or(answer);
  return serving::is_unused_in_pool(pools, ptr) ? CUDA_ERROR_INVALID_VALUE : answer;
}

CUresult cuPointerGetAttributes_of_pool(const driver::RealDriver& real,
                                        serving::ServingPools& pools, CUresult answer,
                                        unsigned int numAttributes, CUpointer_attribute* attributes,
                                        void** data, CUdeviceptr ptr) noexcept {
  if (answer != CUDA_SUCCESS) return answer;
  const auto range = serving::pool_memory_around(pools, ptr);
  if (!range && serving::is_unused_in_pool(pools, ptr)) {
    static const char nobodys = 0;  // an address that is unknown to the driver
    return real.cuPointerGetAttributes(numAttributes, attributes, data,
                                       reinterpret_cast<CUdeviceptr>(&nobodys));
  }
  // Here the driver writes zero for an attribute that does not apply, instead of returning an
  // error.
  for (unsigned i = 0; range && i < numAttributes; ++i)
    if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && !range->is_pinned)
      put<void*>(data[i], nullptr);
    else
      static_cast<void>(attribute_of(real, *range, attributes[i], ptr, data[i]));
  return answer;
}

CUresult cuMemGetInfo_of_pool(const driver::RealDriver&, serving::ServingPools&, CUresult answer,
                              unsigned int*, unsigned int*) noexcept {
  return answer;
}

CUresult cuMemGetInfo_v2_of_pool(const driver::RealDriver&, serving::ServingPools& pools,
                                 CUresult answer, size_t* free, size_t* total) noexcept {
  if (answer == CUDA_SUCCESS) pools.correct_memory_info(free, total);
  return answer;
}

}  // namespace cuwarden::hooks
