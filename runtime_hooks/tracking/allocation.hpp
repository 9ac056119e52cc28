// A request for memory, and the allocation that served it.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"
#include "runtime_hooks/tracking/current_context.hpp"

namespace cuwarden::tracking {

// A request for memory, as the hook of its call understands it. The address is filled in once the
// request is served.
struct Allocation {
  Kind kind{};
  Space space = Space::pointer;
  std::uint64_t address = 0;  // 0: not served, or a size of 0
  std::uint64_t bytes = 0;    // as requested
  std::uint64_t related = 0;  // another address or handle that belongs to the allocation; 0: none
  bool owned_by_context = false;     // ends with its context
  bool host = false;                 // host memory: belongs to no device
  bool opened = false;               // its openings are counted
  bool counts_no_bytes = false;      // a second name for memory that is recorded elsewhere
  bool in_pool = false;              // served by cuwarden's pool instead of the driver
  DeviceOrdinal device = no_device;  // no_device: the current context's device
  // For stream-ordered requests:
  CUstream stream = nullptr;
  CUmemoryPool memory_pool = nullptr;  // null: the device's current one

  // Returns the device of memory that is asked for in this context; no_device for host memory.
  DeviceOrdinal device_in(const CurrentContext& here) const noexcept {
    if (host) return no_device;
    return device != no_device ? device : here.device;
  }
};

}  // namespace cuwarden::tracking
