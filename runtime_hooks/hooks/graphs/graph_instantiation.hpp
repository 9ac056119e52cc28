// The device memory that the driver takes when a graph is instantiated.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "runtime_hooks/hooks/execution/implicit_span.hpp"

namespace cuwarden::hooks {

// Returns the description of an executable graph as an object for which the driver takes memory.
inline tracking::ImplicitObject object_of_graph(CUgraphExec exec) {
  return {Kind::graph_exec, Space::graph_exec, reinterpret_cast<std::uint64_t>(exec)};
}

// Measures the device memory that the driver takes when a graph is instantiated: for the executable
// graph, and for local memory of the graph's kernels. The object is made right before the driver's
// call. Does nothing if the program's call, which outlives the object, is not recorded.
//
// Measures only while readings of devices have taken little time (ImplicitMemory::may_read()), with
// two exceptions. It always measures if the driver may take memory for the heap of device-side
// malloc. It also does if a kernel whose launch was captured needs more local memory than all
// kernels launched before it.
class GraphInstantiation {
 public:
  // Begins the measurement of an instantiation, unless readings of the device have taken too much
  // time or a stream is captured. Measures all the same if the driver may take gigabytes. To be
  // made right before the driver's call. `HookedCall`: the program's call, which outlives the
  // object.
  explicit GraphInstantiation(HookedCall&) noexcept;
  // Records the executable graph that was made, and enters the device memory that the instantiation
  // took into the ledger. To be called right after the driver's call, if that succeeded.
  void done(CUgraphExec) noexcept;

 private:
  // Returns the part of `taken` that the driver took for the graph's kernels: for local memory or
  // for the heap of device-side malloc. The part is 0 if `taken` fits neither of them. Otherwise
  // also notes that the context now has that local memory or heap. `taken`: bytes of device memory
  // that the instantiation took.
  ledger::ImplicitChange kernels_part(std::int64_t taken) noexcept;

  HookedCall& call_;   // the program's call, which instantiates the graph
  ImplicitSpan span_;  // the measurement of the instantiation
  // The context that was current when the CUDA graph was instantiated, and its device.
  CurrentContext here_;
  // The device's base before the instantiation: the latest reading of its free memory, from which
  // calls without readings of their own are measured.
  tracking::FreeBases::Base base_;
  // True if the driver may take gigabytes: local memory for captured kernels, or the heap of
  // device-side malloc.
  bool may_take_gigabytes_ = false;
};

}  // namespace cuwarden::hooks
