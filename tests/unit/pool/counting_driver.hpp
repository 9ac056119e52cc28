// A driver for tests of mapped memory. It counts its memory and fails on request. It is strict:
// misuse counts as an error of the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::pool {

// `page` is the size of a page; `kept` the memory that spilling leaves to the device.
inline constexpr std::uint64_t MiB = std::uint64_t{1} << 20, page = 2 * MiB, kept = 64 * MiB;

// Physical memory that the driver has made.
struct Handle {
  std::uint64_t bytes = 0;
  bool on_host = false;
  int references = 1, mappings = 0;
  std::map<std::uint64_t, std::uint64_t> words;  // Content, one number for each 512 bytes, by word.
};

struct Driver {
  std::mutex lock;
  std::uint64_t free_bytes = 100 * MiB, largest_handle = UINT64_MAX;
  std::uint64_t next_handle = 1, next_address = std::uint64_t{1} << 40;
  std::map<std::uint64_t, Handle> handles;
  std::map<std::uint64_t, std::uint64_t> reservations;  // Bytes of each reservation, by address.
  struct Mapping {
    std::uint64_t handle = 0;
    std::uint64_t devices = 0;  // A bit for each device that may use it.
  };
  std::map<std::uint64_t, Mapping> mappings;  // by address
  bool maps_host = true;
  bool is_integrated = false;   // CU_DEVICE_ATTRIBUTE_INTEGRATED
  int fail_after = -1;          // Calls, of those that can fail, before one does; -1: none.
  int maps_refused_after = -1;  // Mappings before all are refused; -1: none is.
  double fail_share = 0.0;      // The share of calls that fail, of those that can.
  std::mt19937 random{7};
  int errors = 0;
  // Faults of the device: a handle's second address shows other contents, or takes memory of its
  // own; copies between addresses are wrong.
  bool second_address_differs = false, second_address_takes_memory = false;
  bool copies_are_wrong = false;
  std::uint64_t least_free_bytes = UINT64_MAX;  // The least that was free after a handle was made.
  // Called once, without the lock, inside the function.
  std::function<void()> in_create, in_set_access;
  struct Copy {
    std::uint64_t to = 0, from = 0, bytes = 0;
  };
  std::vector<Copy> under_way;  // Copies until the next synchronisation, which does them.

  bool fails() {
    if (fail_after >= 0 && fail_after-- == 0) return true;
    return fail_share > 0 && std::uniform_real_distribution<>(0, 1)(random) < fail_share;
  }
  // Returns the word that the device finds at an address; counts an error if it may not use it.
  std::uint64_t& word(std::uint64_t address) {
    static std::uint64_t nowhere = 0;
    const auto after = mappings.upper_bound(address);
    const auto found = after == mappings.begin() ? mappings.end() : std::prev(after);
    if (found == mappings.end() || (found->second.devices & 1) == 0 ||
        address - found->first >= handles.at(found->second.handle).bytes)
      return ++errors, nowhere = 0;
    return handles.at(found->second.handle).words[(address - found->first) / 512];
  }
  // True if the address lies in a mapping of a handle that is mapped at a lower address, too.
  bool is_second(std::uint64_t address) const {
    const auto found = std::prev(mappings.upper_bound(address));
    return std::any_of(mappings.begin(), found, [&](const auto& mapping) {
      return mapping.second.handle == found->second.handle;
    });
  }
  void drop(std::uint64_t id) {
    Handle& handle = handles.at(id);
    if (handle.references > 0 || handle.mappings > 0) return;
    if (!handle.on_host) free_bytes += handle.bytes;
    handles.erase(id);
  }
};
inline std::unique_ptr<Driver> driver;

// --- the driver's functions

inline void run_once(std::function<void()>& given) {
  std::function<void()> once;
  {
    const std::lock_guard locked(driver->lock);
    once = std::exchange(given, nullptr);
  }
  if (once) once();
}

inline CUresult get_attribute(int* value, CUdevice_attribute which, CUdevice) {
  if (which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)
    *value = -1;
  else if (which == CU_DEVICE_ATTRIBUTE_INTEGRATED)
    *value = driver->is_integrated ? 1 : 0;
  else
    *value = driver->maps_host ? 1 : 0;
  return CUDA_SUCCESS;
}
inline CUresult get_info(size_t* free, size_t* total) {
  const std::lock_guard locked(driver->lock);
  return *free = driver->free_bytes, *total = 1000 * MiB, CUDA_SUCCESS;
}
inline CUresult reserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  // Any other size would make the real driver's own requests slower (measured).
  driver->errors += bytes == 0 || bytes % (32 * MiB) != 0;
  *out = driver->next_address;
  driver->next_address += bytes + 1000 * MiB;
  return driver->reservations[*out] = bytes, CUDA_SUCCESS;
}
inline CUresult free_address(CUdeviceptr start, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  const auto mapped = driver->mappings.lower_bound(start);
  driver->errors += mapped != driver->mappings.end() && mapped->first < start + bytes;
  const auto found = driver->reservations.find(start);
  driver->errors += found == driver->reservations.end() || found->second != bytes;
  return driver->reservations.erase(start), CUDA_SUCCESS;
}
inline CUresult create(CUmemGenericAllocationHandle* out, size_t bytes,
                       const CUmemAllocationProp* where, unsigned long long) {
  run_once(driver->in_create);
  const std::lock_guard locked(driver->lock);
  const bool on_host = where->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  driver->errors += on_host && where->location.id != 0;
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  if (!on_host && (bytes > driver->free_bytes || bytes > driver->largest_handle))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!on_host) driver->free_bytes -= bytes;
  driver->least_free_bytes = std::min(driver->least_free_bytes, driver->free_bytes);
  *out = driver->next_handle++;
  return driver->handles[*out] = {.bytes = bytes, .on_host = on_host, .words = {}}, CUDA_SUCCESS;
}
inline CUresult release(CUmemGenericAllocationHandle handle) {
  const std::lock_guard locked(driver->lock);
  driver->errors += --driver->handles.at(handle).references < 0;
  return driver->drop(handle), CUDA_SUCCESS;
}
inline CUresult map(CUdeviceptr start, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long) {
  const std::lock_guard locked(driver->lock);
  if (driver->maps_refused_after == 0 || driver->fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (driver->maps_refused_after > 0) --driver->maps_refused_after;
  driver->errors += offset != 0 || driver->handles.at(handle).bytes != bytes;
  if (driver->second_address_takes_memory && driver->handles.at(handle).mappings != 0)
    driver->free_bytes -= bytes;
  ++driver->handles.at(handle).mappings;
  return driver->mappings[start] = {handle, 0}, CUDA_SUCCESS;
}
inline CUresult unmap(CUdeviceptr start, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  const auto found = driver->mappings.find(start);
  if (found == driver->mappings.end()) return ++driver->errors, CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t handle = found->second.handle;
  driver->errors += driver->handles.at(handle).bytes != bytes;
  --driver->handles.at(handle).mappings;
  driver->mappings.erase(found);
  return driver->drop(handle), CUDA_SUCCESS;
}
inline CUresult set_access(CUdeviceptr start, size_t bytes, const CUmemAccessDesc* access,
                           size_t count) {
  run_once(driver->in_set_access);
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  std::uint64_t covered = 0;
  for (auto& [address, mapping] : driver->mappings) {
    if (address < start || address >= start + bytes) continue;
    covered += driver->handles.at(mapping.handle).bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bit = std::uint64_t{1} << access[i].location.id;
      if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        mapping.devices |= bit;
      else
        mapping.devices &= ~bit;
    }
  }
  driver->errors += covered != bytes;
  return CUDA_SUCCESS;
}

inline CUresult retain(CUmemGenericAllocationHandle* out, void* address) {
  const std::lock_guard locked(driver->lock);
  const auto found = driver->mappings.find(reinterpret_cast<std::uint64_t>(address));
  if (driver->fails() || found == driver->mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  ++driver->handles.at(found->second.handle).references;
  return *out = found->second.handle, CUDA_SUCCESS;
}
inline CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += to % 512 != 0 || from % 512 != 0 || bytes % 512 != 0;
  driver->under_way.push_back({to, from, bytes});
  return CUDA_SUCCESS;
}
inline CUresult synchronise(CUstream) {
  const std::lock_guard locked(driver->lock);
  for (const auto& [to, from, bytes] : std::exchange(driver->under_way, {}))
    for (std::uint64_t at = 0; at < bytes; at += 512)
      driver->word(to + at) = driver->word(from + at) + (driver->copies_are_wrong ? 1 : 0);
  return driver->fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

// Each word stands for 512 bytes, which all have the value of its lowest byte on the host.
inline CUresult copy_to_host(void* to, CUdeviceptr from, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += from % 512 != 0 || bytes % 512 != 0;
  const bool lies = driver->second_address_differs && driver->is_second(from);
  for (std::uint64_t at = 0; at < bytes; at += 512) {
    const std::uint64_t found = driver->word(from + at) + (lies ? 1 : 0);
    std::fill_n(static_cast<unsigned char*>(to) + at, 512, static_cast<unsigned char>(found));
  }
  return CUDA_SUCCESS;
}
inline CUresult copy_from_host(CUdeviceptr to, const void* from, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += to % 512 != 0 || bytes % 512 != 0;
  for (std::uint64_t at = 0; at < bytes; at += 512)
    driver->word(to + at) = static_cast<const unsigned char*>(from)[at];
  return CUDA_SUCCESS;
}

inline driver::RealDriver functions() {
  driver::RealDriver real;
  real.cuDeviceGetAttribute = get_attribute;
  real.cuMemGetInfo_v2 = get_info;
  real.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  real.cuMemAddressReserve = reserve;
  real.cuMemAddressFree = free_address;
  real.cuMemCreate = create;
  real.cuMemRelease = release;
  real.cuMemMap = map;
  real.cuMemUnmap = unmap;
  real.cuMemSetAccess = set_access;
  real.cuMemRetainAllocationHandle = retain;
  real.cuMemcpyDtoDAsync_v2 = copy;
  real.cuStreamSynchronize = synchronise;
  real.cuMemcpyDtoH_v2 = copy_to_host;
  real.cuMemcpyHtoD_v2 = copy_from_host;
  return real;
}

}  // namespace cuwarden::pool
