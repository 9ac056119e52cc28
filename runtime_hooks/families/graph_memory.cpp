// Bookkeeping for memory nodes: which nodes exist, and what a launch of each executable graph
// leaves behind. The tables are of fixed size; what does not fit is said in the report. Programs
// without memory nodes pay one relaxed load a launch.
#include "runtime_hooks/families/graph_memory.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>

#include "runtime_hooks/core/futex_lock.hpp"

namespace cuwarden::families {
namespace {

struct Node {
  CUdeviceptr address = 0;  // 0: free slot
  std::uint64_t bytes = 0;
  GroupId group;
};

struct Effect {
  CUgraphExec exec = nullptr;  // null: free slot
  CUdeviceptr address = 0;
  bool allocates = false;
};

constexpr std::size_t table_size = 4096;
// Guards both tables; a leaf: nothing else is locked and no foreign call is made below it.
constinit FutexLock lock;
constinit Node nodes[table_size];
constinit Effect effects[table_size];
constinit std::atomic<bool> seen{false};

Node* find_node(CUdeviceptr address) {
  for (Node& node : nodes)
    if (node.address == address) return &node;
  return nullptr;
}

// One effect by its place in the table, so that the driver and the ledger are called unlocked.
Effect effect_at(std::size_t index) {
  const Locked locked(lock);
  return effects[index];
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

// An address that the same graph both allocates and frees leaves nothing behind.
bool cancel_allocation(CUgraphExec exec, CUdeviceptr address) {
  const Locked locked(lock);
  for (Effect& slot : effects) {
    if (slot.exec != exec || slot.address != address || !slot.allocates) continue;
    slot = {};
    return true;
  }
  return false;
}

bool apply_node(HookedCall& call, CUgraphExec exec, CUgraphNode node, CUgraphNodeType wanted) {
  CUgraphNodeType type{};
  if (call.real().cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type != wanted) return true;
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    if (call.real().cuGraphMemAllocNodeGetParams(node, &parameters) != CUDA_SUCCESS) return true;
    return add_effect({exec, parameters.dptr, true});
  }
  CUdeviceptr address = 0;
  if (call.real().cuGraphMemFreeNodeGetParams(node, &address) != CUDA_SUCCESS) return true;
  return cancel_allocation(exec, address) || add_effect({exec, address, false});
}

}  // namespace

void graph_node_created(HookedCall& call, CUresult result, CUdeviceptr address, std::uint64_t bytes,
                        DeviceOrdinal device) {
  if (!call.recording() || result != CUDA_SUCCESS || address == 0) return;
  seen.store(true, std::memory_order_relaxed);
  const GroupId group = call.recorder().group_here(call.api(), Kind::graph, device);
  bool stored = false;
  {
    const Locked locked(lock);
    Node* slot = find_node(address);
    if (slot == nullptr) slot = find_node(0);
    if (slot != nullptr) {
      *slot = {address, bytes, group};
      stored = true;
    }
  }
  if (!stored) call.recorder().ledger().add_reason(ledger::reason_ledger_full);
}

void graph_instantiated(HookedCall& call, CUgraphExec exec, CUgraph graph) {
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return;
  const driver::RealDriver& real = call.real();
  if (real.cuGraphGetNodes == nullptr || real.cuGraphNodeGetType == nullptr ||
      real.cuGraphMemAllocNodeGetParams == nullptr || real.cuGraphMemFreeNodeGetParams == nullptr)
    return;
  std::size_t count = 0;
  if (real.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) return;
  const std::size_t size = count * sizeof(CUgraphNode);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* list = static_cast<CUgraphNode*>(memory);
  bool complete = real.cuGraphGetNodes(graph, list, &count) == CUDA_SUCCESS;
  // Allocations first, so that the frees of the same graph find them.
  for (const CUgraphNodeType type : {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE})
    for (std::size_t i = 0; complete && i < count; ++i)
      complete = apply_node(call, exec, list[i], type);
  munmap(memory, size);
  if (!complete) call.recorder().ledger().add_reason(ledger::reason_ledger_full);
}

void graph_launched(HookedCall& call, CUgraphExec exec) {
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return;
  ledger::Writer& ledger = call.recorder().ledger();
  for (std::size_t i = 0; i < table_size; ++i) {
    const Effect effect = effect_at(i);
    if (effect.exec != exec || effect.exec == nullptr) continue;
    // Also before an allocation: a graph with AUTO_FREE_ON_LAUNCH frees what its last launch left.
    if (const ledger::TakenRecord taken =
            ledger.take(Space::pointer, DeviceAddress{effect.address}))
      ledger.forget(taken);
    if (!effect.allocates) continue;
    Node node;
    {
      const Locked locked(lock);
      if (const Node* found = find_node(effect.address)) node = *found;
    }
    if (node.address == 0) continue;
    ledger.add({.space = Space::pointer,
                .address = DeviceAddress{node.address},
                .bytes = ByteCount{node.bytes},
                .group = node.group,
                .context = call.recorder().place().context});
  }
}

void graph_exec_destroyed(CUgraphExec exec) {
  if (!seen.load(std::memory_order_relaxed)) return;
  const Locked locked(lock);
  for (Effect& effect : effects)
    if (effect.exec == exec) effect = {};
}

}  // namespace cuwarden::families
