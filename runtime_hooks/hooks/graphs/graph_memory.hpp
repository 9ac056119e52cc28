// Memory that graphs allocate. A memory node names an address when it is made, but has no memory
// until the graph is launched. The memory lives on after the launch unless the same graph frees it.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/call/hooked_call.hpp"

namespace cuwarden::hooks {

// Remembers the program's call as the one that made a graph's memory node, so that records of the
// node's memory show the call. The node allocates `bytes` at `address` on the device each time the
// graph is launched. Also notes that the process uses the device. `CUresult` is the driver's
// result; does nothing if it is an error, if `address` is 0, or if the call is not recorded.
void graph_node_created(HookedCall&, CUresult, CUdeviceptr address, std::uint64_t bytes,
                        DeviceOrdinal);

// Reads from the memory nodes of `graph` what each launch of `exec` will allocate and free, and
// stores that in a table; earlier entries for `exec` are removed. If not all can be stored, marks
// the ledger as incomplete. Does nothing if the program's call is not recorded, or if no call of
// graph_node_created() has remembered a node in this process. To be called after the driver made
// the executable graph `exec` from `graph`, or updated it by `graph`.
void graph_instantiated(HookedCall&, CUgraphExec exec, CUgraph graph);
// Records the memory that a launch of `exec` allocates, and removes the records of the memory that
// it frees. To be called after each successful launch. Does nothing if the program's call is not
// recorded.
void graph_launched(HookedCall&, CUgraphExec exec);
// True if launches of `exec` may allocate or free memory.
bool graph_has_memory(CUgraphExec exec) noexcept;
// Returns the device of an allocation that each launch of `exec` makes; no_device if it makes none,
// or if the program's call is not recorded.
DeviceOrdinal device_of_graph(HookedCall&, CUgraphExec exec) noexcept;
// Forgets what launches of `exec` allocate and free. To be called after the driver destroyed
// `exec`.
void graph_exec_destroyed(CUgraphExec exec);
// Forgets all graphs, in a forked child: it has none of the parent's graphs. Another thread may
// have been changing the tables of graphs when the parent forked, so they are made anew.
void forget_graphs() noexcept;

}  // namespace cuwarden::hooks
