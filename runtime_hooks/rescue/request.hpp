// A request of the program, as the ladder, the incident and the ledger see it. Made once for a
// call: when it is refused or, where requests were refused before, when it is served.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"

namespace cuwarden::rescue {

// A request for memory, as the incident and the ladder see it.
struct Request {
  std::uint64_t bytes = 0;           // 0: the call does not say
  DeviceOrdinal device = no_device;  // no_device: host memory, nothing on a device is in its way
  HookId api{};
  Kind kind{};
  ledger::Asked asked = ledger::Asked::memory;
  // Bytes that the driver gave back in vain while it refused; now among what is free.
  std::uint64_t given_back_bytes = 0;
  bool operator==(const Request&) const = default;
};

// Memory that the hook of a refused call can hand to the program.
enum class Accepts : std::uint8_t {
  drivers_memory,  // memory whose address the driver itself writes
  any_memory,
};

}  // namespace cuwarden::rescue
