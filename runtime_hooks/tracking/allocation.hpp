// A request for memory, and the allocation that served it.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"
#include "runtime_hooks/tracking/devices/current_context.hpp"

namespace cuwarden::tracking {

// A request of the program for memory, as the hook of a CUDA call understands it, and then the
// allocation that served it. The hook fills in the address once the driver or cuwarden's pool has
// served the request.
struct Allocation {
  Kind kind{};  // The kind of memory, as the report shows it.
  // The kind of number that the allocation's `address` is, such as a pointer or a handle.
  Space space = Space::pointer;
  // The pointer, handle or array that the program got; 0 if the request was not served, or asked
  // for 0 bytes.
  std::uint64_t address = 0;
  // Bytes that the program asked for; for arrays, pitched and imported memory, the bytes that the
  // memory takes, as far as cuwarden can tell. 0: no bytes, or the size is unknown.
  std::uint64_t bytes = 0;
  // True if the driver frees the memory when the context in which it was allocated ends.
  bool owned_by_context = false;
  // True if this is host memory, which lies on no device.
  bool host = false;
  // True if this is memory of another process, opened by an IPC handle. The program may open the
  // memory several times; the allocation's record counts the openings.
  bool opened = false;
  // True if this is a second address or handle of memory that has a record of its own. The bytes of
  // this record are not added to any sum.
  bool counts_no_bytes = false;
  // True if cuwarden's pool served the request instead of the driver. False for spilled memory.
  bool in_pool = false;
  // Device that the request names. no_device: the request names none and means the device of the
  // current context, or asks for host memory.
  DeviceOrdinal device = no_device;
  // The stream of a stream-ordered request (cuMemAllocAsync and others); has no meaning for other
  // requests.
  CUstream stream = nullptr;
  // The memory pool that a stream-ordered request names; null for the current memory pool of the
  // stream's device. Has no meaning for other requests.
  CUmemoryPool memory_pool = nullptr;

  // Returns the device on which the requested memory lies: the one that the request names, or else
  // that of `here`, the current context at the request. Returns no_device for host memory.
  DeviceOrdinal device_in(const CurrentContext& here) const noexcept {
    if (host) return no_device;
    return device != no_device ? device : here.device;
  }
};

}  // namespace cuwarden::tracking
