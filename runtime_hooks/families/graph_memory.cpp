// Bookkeeping for memory nodes: which call made a node, and what a launch of each executable graph
// allocates and frees. The tables are of fixed size; what does not fit is said in the report.
// Programs without memory nodes pay one relaxed load a launch.
#include "runtime_hooks/families/graph_memory.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <span>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_lock.hpp"

namespace cuwarden::families {
namespace {

// Who made the node that allocates at an address. Asked once, when its graph is instantiated.
struct Node {
  CUdeviceptr address = 0;
  GroupId group;
};

// One memory node of an executable graph.
struct Effect {
  CUgraphExec exec = nullptr;  // null: free slot
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
  GroupId group;
  bool allocates = false;
};

constexpr std::size_t table_size = 4096;
// Guards both tables; a leaf: nothing else is locked and no foreign call is made below it.
constinit FutexLock lock;
constinit Node nodes[table_size];  // a ring: the oldest make room
constinit std::size_t next_node = 0;
constinit Effect effects[table_size];
constinit std::atomic<bool> seen{false};

GroupId maker_of(CUdeviceptr address) {
  const Locked locked(lock);
  for (const Node& node : nodes)
    if (node.address == address) return node.group;
  return {};
}

bool add_effect(const Effect& effect) {
  const Locked locked(lock);
  for (Effect& slot : effects) {
    if (slot.exec != nullptr) continue;
    slot = effect;
    return true;
  }
  return false;
}

// Copies the effects of one sort from slot `from` on, as many as fit, and moves `from` behind
// them: the ledger is told unlocked.
std::size_t copy_effects(CUgraphExec exec, bool allocates, std::size_t& from,
                         std::span<Effect> to) {
  const Locked locked(lock);
  std::size_t count = 0;
  for (; from < table_size && count < to.size(); ++from)
    if (effects[from].exec == exec && effects[from].allocates == allocates)
      to[count++] = effects[from];
  return count;
}

template <class Apply>
void for_each_effect(CUgraphExec exec, bool allocates, Apply apply) {
  Effect some[32];
  for (std::size_t from = 0; from < table_size;) {
    const std::size_t count = copy_effects(exec, allocates, from, some);
    for (std::size_t i = 0; i < count; ++i) apply(some[i]);
  }
}

// Whether what the node does could be stored.
bool note_effect(HookedCall& call, CUgraphExec exec, CUgraphNode node) {
  CUgraphNodeType type{};
  if (call.real().cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return true;
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    if (call.real().cuGraphMemAllocNodeGetParams(node, &parameters) != CUDA_SUCCESS) return true;
    GroupId group = maker_of(parameters.dptr);
    if (group.value == 0)
      group = call.recorder().group_here(call.api(), Kind::graph,
                                         DeviceOrdinal{parameters.poolProps.location.id});
    return add_effect({exec, parameters.dptr, parameters.bytesize, group, true});
  }
  if (type != CU_GRAPH_NODE_TYPE_MEM_FREE) return true;
  CUdeviceptr address = 0;
  if (call.real().cuGraphMemFreeNodeGetParams(node, &address) != CUDA_SUCCESS) return true;
  return add_effect({exec, address, 0, {}, false});
}

void forget_at(ledger::Writer& ledger, CUdeviceptr address) {
  if (const ledger::TakenRecord taken = ledger.take(Space::pointer, DeviceAddress{address}))
    ledger.forget(taken);
}

}  // namespace

void graph_node_created(HookedCall& call, CUresult result, CUdeviceptr address,
                        DeviceOrdinal device) {
  if (!call.recording() || result != CUDA_SUCCESS || address == 0) return;
  seen.store(true, std::memory_order_relaxed);
  const GroupId group = call.recorder().group_here(call.api(), Kind::graph, device);
  const Locked locked(lock);
  // Addresses come again once their graph is gone.
  for (Node& node : nodes)
    if (node.address == address) node = {};
  nodes[next_node] = {address, group};
  next_node = (next_node + 1) % table_size;
}

void graph_instantiated(HookedCall& call, CUgraphExec exec, CUgraph graph) {
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return;
  const driver::RealDriver& real = call.real();
  if (real.cuGraphGetNodes == nullptr || real.cuGraphNodeGetType == nullptr ||
      real.cuGraphMemAllocNodeGetParams == nullptr || real.cuGraphMemFreeNodeGetParams == nullptr)
    return;
  const ErrnoGuard keep;
  std::size_t count = 0;
  if (real.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return;
  const std::size_t size = count * sizeof(CUgraphNode);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* list = static_cast<CUgraphNode*>(memory);
  bool complete = real.cuGraphGetNodes(graph, list, &count) == CUDA_SUCCESS;
  for (std::size_t i = 0; complete && i < count; ++i) complete = note_effect(call, exec, list[i]);
  munmap(memory, size);
  if (!complete) call.recorder().ledger().add_reason(ledger::reason_ledger_full);
}

void graph_launched(HookedCall& call, CUgraphExec exec) {
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return;
  ledger::Writer& ledger = call.recorder().ledger();
  const ContextId context = call.recorder().place().context;
  for_each_effect(exec, true, [&](const Effect& effect) {
    // AUTO_FREE_ON_LAUNCH frees what the last launch left.
    forget_at(ledger, effect.address);
    ledger.add({.space = Space::pointer,
                .address = DeviceAddress{effect.address},
                .bytes = ByteCount{effect.bytes},
                .group = effect.group,
                .context = context});
  });
  for_each_effect(exec, false, [&](const Effect& effect) { forget_at(ledger, effect.address); });
}

void graph_exec_destroyed(CUgraphExec exec) {
  if (!seen.load(std::memory_order_relaxed)) return;
  const Locked locked(lock);
  for (Effect& effect : effects)
    if (effect.exec == exec) effect = {};
}

}  // namespace cuwarden::families
