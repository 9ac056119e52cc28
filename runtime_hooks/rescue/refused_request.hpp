// A request that was refused for lack of memory. Where the same thread is served the same soon, the
// program has helped itself, as allocators do that give up what they keep and ask again.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"

namespace cuwarden::rescue {

struct RefusedRequest {
  std::uint64_t bytes = 0;
  DeviceOrdinal device = no_device;
  HookId api;
  Kind kind{};
  std::uint64_t given_back_bytes = 0;  // by the driver, in vain; now among what is free
  bool operator==(const RefusedRequest&) const = default;
};

}  // namespace cuwarden::rescue
