// Memory that graphs allocate. A memory node names an address when it is made, but there is no
// memory until the graph is launched; it lives on after the launch unless the same graph frees it.
#pragma once

#include <cstdint>

#include "runtime_hooks/families/hooked_call.hpp"

namespace cuwarden::families {

// A node that will allocate [address, address + bytes) was made by this call.
void graph_node_created(HookedCall&, CUresult, CUdeviceptr address, std::uint64_t bytes,
                        DeviceOrdinal);

// What one launch of `exec` leaves allocated or frees is worked out from its graph.
void graph_instantiated(HookedCall&, CUgraphExec exec, CUgraph graph);
void graph_launched(HookedCall&, CUgraphExec exec);
void graph_exec_destroyed(CUgraphExec exec);

}  // namespace cuwarden::families
