// Memory that graphs allocate. A memory node names an address when it is made, but has no memory
// until the graph is launched. The memory lives on after the launch unless the same graph frees it.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/call/hooked_call.hpp"

namespace cuwarden::hooks {

// Notes that `call` made a node which allocates `bytes` at `address` at each launch; does nothing
// if the call failed.
void graph_node_created(HookedCall&, CUresult, CUdeviceptr address, std::uint64_t bytes,
                        DeviceOrdinal);

// Reads from `graph` what a launch of `exec` allocates and frees.
void graph_instantiated(HookedCall&, CUgraphExec exec, CUgraph graph);
// Records what this launch of `exec` allocates and frees.
void graph_launched(HookedCall&, CUgraphExec exec);
// Returns the device on which launches of `exec` allocate first; no_device if they allocate
// nothing.
DeviceOrdinal device_of_graph(HookedCall&, CUgraphExec exec) noexcept;
void graph_exec_destroyed(CUgraphExec exec);
// To be called in a forked child: empties the tables, since the child has none of the parent's
// graphs, and another thread may have been changing the tables when the parent forked.
void forget_graphs() noexcept;

}  // namespace cuwarden::hooks
