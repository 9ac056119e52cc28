// A request of the program for memory, as a value. Made when a request is refused. After the first
// refusal in the process, also made when a request is served, to be compared with the last refused
// one.
#pragma once

#include <cstdint>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"

namespace cuwarden::rescue {

// A request of the program for memory, or for something that takes memory. Two equal values count
// as one request that was repeated.
struct Request {
  std::uint64_t bytes = 0;           // size of the request; 0: the call does not say
  DeviceOrdinal device = no_device;  // device of the memory; no_device: host memory
  HookId api{};                      // the CUDA function that the program called
  // Kind of the requested memory. Kind::graph if a graph was asked for; Kind::device for a context,
  // a stream or another thing.
  Kind kind{};
  // Thing that the call asked for, such as memory, a context or a graph.
  ledger::Asked asked = ledger::Asked::memory;
  bool operator==(const Request&) const = default;
};

// Device memory that a call other than an allocation needs for its own work. Such calls make a
// context, a stream or a graph, load code, launch a kernel, copy, or raise a limit.
struct Need {
  // Thing that the call asked for, such as a context, a graph or a launch.
  ledger::Asked asked = ledger::Asked::memory;
  DeviceOrdinal device = no_device;  // device of the memory; no_device: the current context's
  // Bytes that the call needed; 0 if unknown. If known, every error of the call counts as a
  // refusal; otherwise only OUT_OF_MEMORY does. For a context, an error that the device's compute
  // mode explains always counts.
  std::uint64_t bytes = 0;
  // Bytes that the driver gave back to the device to make room, before it refused the call even so;
  // 0: none.
  std::uint64_t given_back_bytes = 0;
};

// Sources of memory by which a request can be served after the driver has refused it.
enum class Accepts : std::uint8_t {
  // Only the driver may serve the request. It writes the address to the program's pointer.
  drivers_memory,
  // The driver or cuwarden may serve the request. If cuwarden serves it, with host memory behind a
  // device address, the hook writes this address to the program's pointer.
  any_memory,
};

}  // namespace cuwarden::rescue
