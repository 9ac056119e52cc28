// The functions of a fake driver for tests of mapped memory; driver_state.hpp has its state. The
// driver counts its memory, fails on request, and counts misuse as an error of the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime_hooks/driver/real_functions.hpp"
#include "tests/unit/pool/driver_state.hpp"

namespace cuwarden::pool {

// Calls the function once: empties `given` first. Does nothing if `given` is empty. The driver's
// lock is not held during the call.
inline void run_once(std::function<void()>& given) {
  std::function<void()> once;
  {
    const std::lock_guard locked(driver->lock);
    once = std::exchange(given, nullptr);
  }
  if (once) once();
}

// Stands in for cuDeviceGetAttribute. The results: -1 for the host's NUMA node; 1 or 0 for an
// integrated device; for any other attribute, 1 if the device maps host memory, else 0.
inline CUresult get_attribute(int* value, CUdevice_attribute which, CUdevice) {
  if (which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)
    *value = -1;
  else if (which == CU_DEVICE_ATTRIBUTE_INTEGRATED)
    *value = driver->is_integrated ? 1 : 0;
  else
    *value = driver->maps_host ? 1 : 0;
  return CUDA_SUCCESS;
}
// Stands in for cuMemGetInfo: the total is 1000 MiB.
inline CUresult get_info(size_t* free, size_t* total) {
  const std::lock_guard locked(driver->lock);
  return *free = driver->free_bytes, *total = 1000 * MiB, CUDA_SUCCESS;
}
// Stands in for cuMemAddressReserve. Counts an error for a size that is no multiple of 32 MiB.
inline CUresult reserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails() || bytes > driver->largest_reservation) return CUDA_ERROR_OUT_OF_MEMORY;
  // Any other size would make the real driver's own requests slower (measured).
  driver->errors += bytes == 0 || bytes % (32 * MiB) != 0;
  *out = driver->next_address;
  driver->next_address += bytes + 1000 * MiB;
  return driver->reservations[*out] = bytes, CUDA_SUCCESS;
}
// Stands in for cuMemAddressFree: ends the reservation at `start`, and always succeeds. Counts an
// error if a mapping begins in the range, or if the range is no whole reservation.
inline CUresult free_address(CUdeviceptr start, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  const auto mapped = driver->mappings.lower_bound(start);
  driver->errors += mapped != driver->mappings.end() && mapped->first < start + bytes;
  const auto found = driver->reservations.find(start);
  driver->errors += found == driver->reservations.end() || found->second != bytes;
  return driver->reservations.erase(start), CUDA_SUCCESS;
}
// Stands in for cuMemCreate: makes memory with one handle, if the device has room.
inline CUresult create(CUmemGenericAllocationHandle* out, size_t bytes,
                       const CUmemAllocationProp* where, unsigned long long) {
  run_once(driver->in_create);
  const std::lock_guard locked(driver->lock);
  const bool on_host = where->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
  driver->errors += on_host && where->location.id != 0;
  ++driver->calls.create;
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  if (!on_host && (bytes > driver->free_bytes || bytes > driver->largest_handle))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!on_host) driver->free_bytes -= bytes;
  driver->least_free_bytes = std::min(driver->least_free_bytes, driver->free_bytes);
  *out = driver->next_handle++;
  return driver->handles[*out] = {.bytes = bytes, .on_host = on_host, .words = {}}, CUDA_SUCCESS;
}
// Stands in for cuMemRelease: ends one handle of the memory.
inline CUresult release(CUmemGenericAllocationHandle handle) {
  const std::lock_guard locked(driver->lock);
  driver->errors += --driver->handles.at(handle).references < 0;
  return driver->drop(handle), CUDA_SUCCESS;
}
// Stands in for cuMemMap: maps the whole memory. No device may use the address yet.
inline CUresult map(CUdeviceptr start, size_t bytes, size_t offset,
                    CUmemGenericAllocationHandle handle, unsigned long long) {
  const std::lock_guard locked(driver->lock);
  ++driver->calls.map;
  if (driver->maps_refused_after == 0 || driver->fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (driver->maps_refused_after > 0) --driver->maps_refused_after;
  driver->errors += offset != 0 || driver->handles.at(handle).bytes != bytes;
  if (driver->is_mapped(start, bytes)) return ++driver->errors, CUDA_ERROR_INVALID_VALUE;
  if (driver->second_address_takes_memory && driver->handles.at(handle).mappings != 0)
    driver->free_bytes -= bytes;
  ++driver->handles.at(handle).mappings;
  return driver->mappings[start] = {handle, 0}, CUDA_SUCCESS;
}
// Stands in for cuMemUnmap. Counts an error if nothing, or other memory, is mapped there.
inline CUresult unmap(CUdeviceptr start, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  ++driver->calls.unmap;
  if (driver->unmaps_refused_after >= 0 && driver->unmaps_refused_after-- == 0)
    return CUDA_ERROR_UNKNOWN;
  const auto found = driver->mappings.find(start);
  if (found == driver->mappings.end()) return ++driver->errors, CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t handle = found->second.handle;
  driver->errors += driver->handles.at(handle).bytes != bytes;
  --driver->handles.at(handle).mappings;
  driver->mappings.erase(found);
  return driver->drop(handle), CUDA_SUCCESS;
}
// Stands in for cuMemSetAccess. Counts an error if the range is not mapped as a whole.
inline CUresult set_access(CUdeviceptr start, size_t bytes, const CUmemAccessDesc* access,
                           size_t count) {
  run_once(driver->in_set_access);
  const std::lock_guard locked(driver->lock);
  ++driver->calls.set_access;
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

// Stands in for cuMemRetainAllocationHandle: gives one more handle of the memory that is mapped at
// `address`.
inline CUresult retain(CUmemGenericAllocationHandle* out, void* address) {
  const std::lock_guard locked(driver->lock);
  const auto found = driver->mappings.find(reinterpret_cast<std::uint64_t>(address));
  if (driver->fails() || found == driver->mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  ++driver->handles.at(found->second.handle).references;
  return *out = found->second.handle, CUDA_SUCCESS;
}
// Stands in for cuMemcpyDtoDAsync: notes a copy, whose bytes move at the next synchronisation.
inline CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  const std::lock_guard locked(driver->lock);
  ++driver->calls.copy;
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  return driver->start(to, from, bytes), CUDA_SUCCESS;
}
// Stands in for cuStreamSynchronize: moves the bytes of all copies that were begun, in whichever
// stream. Counts an error if memory of a copy was unmapped before.
inline CUresult synchronise(CUstream) {
  const std::lock_guard locked(driver->lock);
  ++driver->calls.wait;
  for (const auto& copy : std::exchange(driver->under_way, {})) {
    // A copy may run until it was waited for: its memory must stay mapped.
    driver->errors += driver->handle_at(copy.to) != copy.to_handle ||
                      driver->handle_at(copy.from) != copy.from_handle;
    std::vector<std::uint64_t> copied;
    driver->each_word(copy.from, copy.bytes,
                      [&](std::uint64_t word, std::uint64_t) { copied.push_back(word); });
    driver->each_word(copy.to, copy.bytes, [&](std::uint64_t& word, std::uint64_t at) {
      word = copied[at / 512] + (driver->copies_are_wrong ? 1 : 0);
    });
  }
  if (driver->waits_refused_after >= 0 && driver->waits_refused_after-- == 0)
    return CUDA_ERROR_UNKNOWN;
  return driver->fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

// Stands in for cuModuleLoadData: loads the module of the pool's copy kernel. Counts an error if it
// is loaded already.
inline CUresult load_module(CUmodule* out, const void*) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += driver->has_module;
  driver->has_module = true;
  return *out = reinterpret_cast<CUmodule>(&driver->has_module), CUDA_SUCCESS;
}
// Stands in for cuModuleUnload.
inline CUresult unload_module(CUmodule) {
  const std::lock_guard locked(driver->lock);
  return driver->has_module = false, CUDA_SUCCESS;
}
// Stands in for cuModuleGetFunction. Counts an error for any name but the copy kernel's.
inline CUresult get_function(CUfunction* out, CUmodule, const char* name) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += std::string_view(name) != "cuwarden_copy_parts";
  return *out = reinterpret_cast<CUfunction>(&driver->is_code_loaded), CUDA_SUCCESS;
}
// Stands in for cuFuncLoad: loads the copy kernel's code.
inline CUresult load_function(CUfunction) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  return driver->is_code_loaded = true, CUDA_SUCCESS;
}
// Stands in for cuLaunchKernel: begins the copies that the copy kernel's parameters list. Counts an
// error if the kernel is not loaded or the launch has a wrong shape.
inline CUresult launch(CUfunction kernel, unsigned width, unsigned height, unsigned, unsigned x,
                       unsigned y, unsigned z, unsigned, CUstream, void** parameters, void**) {
  const std::lock_guard locked(driver->lock);
  ++driver->calls.launch;
  if (driver->launches_refused_after == 0 || driver->fails()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (driver->launches_refused_after > 0) --driver->launches_refused_after;
  struct List {
    std::uint64_t count;
    struct {
      std::uint64_t to, from, bytes;
    } parts[170];
  };
  const auto& list = *static_cast<const List*>(parameters[0]);
  driver->errors += !driver->has_module || !driver->is_code_loaded || height == 0 ||
                    kernel != reinterpret_cast<CUfunction>(&driver->is_code_loaded) ||
                    width != list.count || list.count > std::size(list.parts) || x != 256 ||
                    y != 1 || z != 1;
  for (std::uint64_t i = list.count; i != 0; --i)
    driver->start(list.parts[i - 1].to, list.parts[i - 1].from, list.parts[i - 1].bytes);
  return CUDA_SUCCESS;
}

// Stands in for cuMemcpyDtoH. The driver keeps one word for each 512 bytes of device memory. On the
// host, all 512 bytes get the value of the word's lowest byte.
inline CUresult copy_to_host(void* to, CUdeviceptr from, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += from % 512 != 0 || bytes % 512 != 0;
  const bool lies = driver->second_address_differs && driver->is_second(from);
  driver->each_word(from, bytes, [&](std::uint64_t word, std::uint64_t at) {
    std::fill_n(static_cast<unsigned char*>(to) + at, 512,
                static_cast<unsigned char>(word + (lies ? 1 : 0)));
  });
  return CUDA_SUCCESS;
}
// Stands in for cuMemcpyHtoD. The driver keeps one word for each 512 bytes of device memory. The
// word gets the value of the first of the 512 bytes.
inline CUresult copy_from_host(CUdeviceptr to, const void* from, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += to % 512 != 0 || bytes % 512 != 0;
  driver->each_word(to, bytes, [&](std::uint64_t& word, std::uint64_t at) {
    word = static_cast<const unsigned char*>(from)[at];
  });
  return CUDA_SUCCESS;
}

// Returns the table of the fake driver's functions for mapped memory.
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
// Returns the table of a fake driver that can also load and launch the pool's copy kernel.
inline driver::RealDriver functions_with_kernels() {
  driver::RealDriver real = functions();
  real.cuModuleLoadData = load_module;
  real.cuModuleUnload = unload_module;
  real.cuModuleGetFunction = get_function;
  real.cuFuncLoad = load_function;
  real.cuLaunchKernel = launch;
  return real;
}

}  // namespace cuwarden::pool
