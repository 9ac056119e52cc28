// Memory that graphs allocate. A memory node names an address when it is made, but there is no
// memory until the graph is launched; it lives on after the launch unless the same graph frees it.
#pragma once

#include <cstdint>

#include "runtime_hooks/hooks/hooked_call.hpp"

namespace cuwarden::hooks {

// This call made a node that will allocate at `address`.
void graph_node_created(HookedCall&, CUresult, CUdeviceptr address, std::uint64_t bytes,
                        DeviceOrdinal);

// What one launch of `exec` allocates and frees is read from its graph.
void graph_instantiated(HookedCall&, CUgraphExec exec, CUgraph graph);
void graph_launched(HookedCall&, CUgraphExec exec);
void graph_exec_destroyed(CUgraphExec exec);
// In a forked child: the parent's graphs are none of its own, and another thread of the parent's
// may have been at work on the tables.
void forget_graphs() noexcept;

}  // namespace cuwarden::hooks
