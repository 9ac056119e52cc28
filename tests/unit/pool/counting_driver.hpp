// A driver for tests of mapped memory. It counts its memory and fails on request. It is strict:
// misuse counts as an error of the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::pool {

// Numbers of bytes: of a mebibyte, of a page of the pool, and of the memory that spilling leaves to
// the device (`kept`).
inline constexpr std::uint64_t MiB = std::uint64_t{1} << 20, page = 2 * MiB, kept = 64 * MiB;

// Physical memory that the driver has made (cuMemCreate).
struct Handle {
  // Size of the memory.
  std::uint64_t bytes = 0;
  bool on_host = false;  // true for host memory, false for device memory
  // Number of handles that the program has for the memory, and of addresses at which it is mapped.
  int references = 1, mappings = 0;
  // Content of the memory: one number for each 512 bytes, by its index.
  std::map<std::uint64_t, std::uint64_t> words;
};

// The driver's state, and the faults that a test asks for.
struct Driver {
  std::mutex lock;  // held by the functions below while they use the other members
  // Free bytes of the device; largest memory that cuMemCreate makes on it.
  std::uint64_t free_bytes = 100 * MiB, largest_handle = UINT64_MAX;
  // Largest reservation of addresses that the driver makes.
  std::uint64_t largest_reservation = UINT64_MAX;
  // The handle and the address that the next cuMemCreate and cuMemAddressReserve give.
  std::uint64_t next_handle = 1, next_address = std::uint64_t{1} << 40;
  // The physical memory that exists, by its handle.
  std::map<std::uint64_t, Handle> handles;
  std::map<std::uint64_t, std::uint64_t> reservations;  // bytes of each reservation, by its start
  // Memory that is mapped at an address.
  struct Mapping {
    std::uint64_t handle = 0;  // the mapped memory
    // Bit N is set if the device of ordinal N may use the address.
    std::uint64_t devices = 0;
  };
  std::map<std::uint64_t, Mapping> mappings;  // the mappings, by their addresses
  bool maps_host = true;                      // true if devices can map host memory
  // True if the device shares the host's memory (CU_DEVICE_ATTRIBUTE_INTEGRATED).
  bool is_integrated = false;
  // Number of calls that succeed, of those that can fail, before one fails; -1: none fails for this
  // reason.
  int fail_after = -1;
  // Number of cuMemMap calls that succeed before all are refused; -1: none is refused.
  int maps_refused_after = -1;
  // Share of the calls that fail at random, of those that can fail: 0 to 1.
  double fail_share = 0.0;
  std::mt19937 random{7};  // decides which calls fail by `fail_share`
  // Number of calls that a real driver would refuse, or that would be errors of the pool.
  int errors = 0;
  // Faults of the device: the second address of a memory shows other contents, or takes memory of
  // its own.
  bool second_address_differs = false, second_address_takes_memory = false;
  // True if copies between device addresses store wrong contents.
  bool copies_are_wrong = false;
  // The fewest bytes that were free after a cuMemCreate.
  std::uint64_t least_free_bytes = UINT64_MAX;
  // Called once, without the lock, inside the next cuMemCreate or cuMemSetAccess; empty: nothing is
  // called.
  std::function<void()> in_create, in_set_access;
  // A copy between device addresses that was begun.
  struct Copy {
    // Addresses of destination and source, and number of bytes.
    std::uint64_t to = 0, from = 0, bytes = 0;
    std::uint64_t to_handle = 0, from_handle = 0;  // the memory there at that moment
  };
  // Copies that were begun, in any order. The next synchronisation does them.
  std::vector<Copy> under_way;
  bool has_module = false, is_code_loaded = false;  // The copy kernel is loaded, and its code.
  int launches_refused_after = -1;                  // Launches before all are refused; -1: none is.
  int unmaps_refused_after = -1;  // Mappings undone before one is not; -1: all are.
  int waits_refused_after = -1;   // Synchronisations before one fails, once done; -1: none does.
  // Numbers of calls since the test has set them to 0.
  struct Calls {
    int create = 0, map = 0, unmap = 0, set_access = 0, copy = 0, launch = 0, wait = 0;
  } calls;

  // Returns true if the present call is to fail, by `fail_after` or `fail_share`.
  bool fails() {
    if (fail_after >= 0 && fail_after-- == 0) return true;
    return fail_share > 0 && std::uniform_real_distribution<>(0, 1)(random) < fail_share;
  }
  // Returns the number that the device finds at an address, which stands for 512 bytes. Counts an
  // error, and returns one without a meaning, if device 0 may not use the address.
  std::uint64_t& word(std::uint64_t address) {
    static std::uint64_t nowhere = 0;
    const auto after = mappings.upper_bound(address);
    const auto found = after == mappings.begin() ? mappings.end() : std::prev(after);
    if (found == mappings.end() || (found->second.devices & 1) == 0 ||
        address - found->first >= handles.at(found->second.handle).bytes)
      return ++errors, nowhere = 0;
    return handles.at(found->second.handle).words[(address - found->first) / 512];
  }
  // Returns the handle that is mapped at an address; 0 if there is none.
  std::uint64_t handle_at(std::uint64_t address) const {
    const auto after = mappings.upper_bound(address);
    return after == mappings.begin() ? 0 : std::prev(after)->second.handle;
  }
  // True if memory is mapped at one of the addresses.
  bool is_mapped(std::uint64_t start, std::uint64_t bytes) const {
    const auto after = mappings.lower_bound(start + bytes);
    return after != mappings.begin() &&
           std::prev(after)->first + handles.at(std::prev(after)->second.handle).bytes > start;
  }
  void start(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    errors += to % 512 != 0 || from % 512 != 0 || bytes % 512 != 0 || bytes == 0;
    under_way.push_back({to, from, bytes, handle_at(to), handle_at(from)});
  }
  // True if the address lies in a mapping of a handle that is mapped at a lower address, too.
  bool is_second(std::uint64_t address) const {
    const auto found = std::prev(mappings.upper_bound(address));
    return std::any_of(mappings.begin(), found, [&](const auto& mapping) {
      return mapping.second.handle == found->second.handle;
    });
  }
  // Ends the memory with this handle if the program has no handle for it and it is mapped nowhere.
  void drop(std::uint64_t id) {
    Handle& handle = handles.at(id);
    if (handle.references > 0 || handle.mappings > 0) return;
    if (!handle.on_host) free_bytes += handle.bytes;
    handles.erase(id);
  }
};
// The state of the fake driver, which each test makes anew.
inline std::unique_ptr<Driver> driver;

// --- the driver's functions

// Calls the function and empties it, so that it is called once; does nothing if it is empty. The
// lock is not held during the call.
inline void run_once(std::function<void()>& given) {
  std::function<void()> once;
  {
    const std::lock_guard locked(driver->lock);
    once = std::exchange(given, nullptr);
  }
  if (once) once();
}

// Stands in for cuDeviceGetAttribute: tells if the device is integrated, that the host has no NUMA
// node (-1), and for other attributes, if the device maps host memory.
inline CUresult get_attribute(int* value, CUdevice_attribute which, CUdevice) {
  if (which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID)
    *value = -1;
  else if (which == CU_DEVICE_ATTRIBUTE_INTEGRATED)
    *value = driver->is_integrated ? 1 : 0;
  else
    *value = driver->maps_host ? 1 : 0;
  return CUDA_SUCCESS;
}
// Stands in for cuMemGetInfo: tells the free bytes, and 1000 MiB in all.
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
// Stands in for cuMemAddressFree. Counts an error if memory is mapped there, or if the range is no
// whole reservation.
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
// Stands in for cuMemcpyDtoDAsync: begins a copy, which the next synchronisation does.
inline CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  const std::lock_guard locked(driver->lock);
  ++driver->calls.copy;
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  return driver->start(to, from, bytes), CUDA_SUCCESS;
}
// Stands in for cuStreamSynchronize: does all copies that were begun, in any stream.
inline CUresult synchronise(CUstream) {
  const std::lock_guard locked(driver->lock);
  ++driver->calls.wait;
  for (const auto& copy : std::exchange(driver->under_way, {})) {
    // A copy may run until it was waited for: its memory must stay mapped.
    driver->errors += driver->handle_at(copy.to) != copy.to_handle ||
                      driver->handle_at(copy.from) != copy.from_handle;
    for (std::uint64_t at = 0; at < copy.bytes; at += 512)
      driver->word(copy.to + at) =
          driver->word(copy.from + at) + (driver->copies_are_wrong ? 1 : 0);
  }
  if (driver->waits_refused_after >= 0 && driver->waits_refused_after-- == 0)
    return CUDA_ERROR_UNKNOWN;
  return driver->fails() ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

// Stand in for the functions that load and launch the pool's copy kernel.
inline CUresult load_module(CUmodule* out, const void*) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += driver->has_module;
  driver->has_module = true;
  return *out = reinterpret_cast<CUmodule>(&driver->has_module), CUDA_SUCCESS;
}
inline CUresult unload_module(CUmodule) {
  const std::lock_guard locked(driver->lock);
  return driver->has_module = false, CUDA_SUCCESS;
}
inline CUresult get_function(CUfunction* out, CUmodule, const char* name) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += std::string_view(name) != "cuwarden_copy_parts";
  return *out = reinterpret_cast<CUfunction>(&driver->is_code_loaded), CUDA_SUCCESS;
}
inline CUresult load_function(CUfunction) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  return driver->is_code_loaded = true, CUDA_SUCCESS;
}
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

// Stands in for cuMemcpyDtoH. Each word stands for 512 bytes, which all have the value of its
// lowest byte on the host.
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
// Stands in for cuMemcpyHtoD. Each word gets the value of the first byte of its 512 bytes.
inline CUresult copy_from_host(CUdeviceptr to, const void* from, size_t bytes) {
  const std::lock_guard locked(driver->lock);
  if (driver->fails()) return CUDA_ERROR_UNKNOWN;
  driver->errors += to % 512 != 0 || bytes % 512 != 0;
  for (std::uint64_t at = 0; at < bytes; at += 512)
    driver->word(to + at) = static_cast<const unsigned char*>(from)[at];
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
// The functions of a driver that can load and launch kernels.
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
