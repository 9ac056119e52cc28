// Memory that graphs allocate. A memory node names an address when it is made, but has no memory
// until the graph is launched. The memory lives on after the launch unless the same graph frees it.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/call/hooked_call.hpp"

namespace cuwarden::hooks {

// To be called after the driver made a graph's memory node, which allocates `bytes` at `address`
// each time the graph is launched. Remembers the program's call, so that records of the memory show
// it. Does nothing if the driver's result is an error.
void graph_node_created(HookedCall&, CUresult, CUdeviceptr address, std::uint64_t bytes,
                        DeviceOrdinal);

// To be called after the driver made the executable graph `exec` from `graph`. Reads from the
// graph's memory nodes what each launch of `exec` will allocate and free. If not all can be stored,
// the ledger is marked as incomplete.
void graph_instantiated(HookedCall&, CUgraphExec exec, CUgraph graph);
// To be called after the driver launched `exec`. Records the memory that the launch allocates, and
// removes the records of the memory that it frees.
void graph_launched(HookedCall&, CUgraphExec exec);
// Returns the device of the first allocation of a launch of `exec`; no_device if a launch allocates
// nothing.
DeviceOrdinal device_of_graph(HookedCall&, CUgraphExec exec) noexcept;
// To be called after the driver destroyed `exec`. Forgets what its launches allocate and free.
void graph_exec_destroyed(CUgraphExec exec);
// Forgets all graphs, in a forked child: it has none of the parent's graphs. Another thread may
// have been changing the tables of graphs when the parent forked, so they are made anew.
void forget_graphs() noexcept;

}  // namespace cuwarden::hooks
