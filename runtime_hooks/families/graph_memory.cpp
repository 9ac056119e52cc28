// Tells the ledger what graphs allocate and free. What does not fit into the tables of memory nodes
// is said in the report. Programs without memory nodes pay one relaxed load a launch.
#include "runtime_hooks/families/graph_memory.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/families/memory_nodes.hpp"

namespace cuwarden::families {
namespace {

constinit NodeMakers makers;
constinit ExecEffects effects;
constinit std::atomic<bool> seen{false};

std::uint64_t number_of(CUgraphExec exec) { return reinterpret_cast<std::uint64_t>(exec); }

void say_where_left(HookedCall& call) {
  if (makers.left() || effects.left())
    call.recorder().ledger().add_reason(ledger::reason_recording_stopped);
}

// Whether what the node does could be stored.
bool note_effect(HookedCall& call, CUgraphExec exec, CUgraphNode node) {
  CUgraphNodeType type{};
  if (call.real().cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return true;
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    if (call.real().cuGraphMemAllocNodeGetParams(node, &parameters) != CUDA_SUCCESS) return true;
    GroupId group = makers.maker_of(parameters.dptr);
    if (group.value == 0)
      group = call.recorder().group_of(call.caller(), Kind::graph,
                                       DeviceOrdinal{parameters.poolProps.location.id});
    return effects.add({number_of(exec), parameters.dptr, parameters.bytesize, group, true});
  }
  if (type != CU_GRAPH_NODE_TYPE_MEM_FREE) return true;
  CUdeviceptr address = 0;
  if (call.real().cuGraphMemFreeNodeGetParams(node, &address) != CUDA_SUCCESS) return true;
  return effects.add({number_of(exec), address, 0, {}, false});
}

}  // namespace

void graph_node_created(HookedCall& call, CUresult result, CUdeviceptr address,
                        DeviceOrdinal device) {
  if (!call.recording() || result != CUDA_SUCCESS || address == 0) return;
  seen.store(true, std::memory_order_relaxed);
  call.recorder().graph_uses(device);
  makers.made(address, call.recorder().group_of(call.caller(), Kind::graph, device));
  say_where_left(call);
}

namespace {

bool note_effects(HookedCall& call, CUgraphExec exec, CUgraph graph) {
  const driver::RealDriver& real = call.real();
  std::size_t count = 0;
  if (real.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return false;
  if (count == 0) return true;
  const std::size_t size = count * sizeof(CUgraphNode);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* list = static_cast<CUgraphNode*>(memory);
  bool complete = real.cuGraphGetNodes(graph, list, &count) == CUDA_SUCCESS;
  for (std::size_t i = 0; complete && i < count; ++i) complete = note_effect(call, exec, list[i]);
  munmap(memory, size);
  return complete;
}

}  // namespace

void graph_instantiated(HookedCall& call, CUgraphExec exec, CUgraph graph) {
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return;
  const driver::RealDriver& real = call.real();
  if (real.cuGraphGetNodes == nullptr || real.cuGraphNodeGetType == nullptr ||
      real.cuGraphMemAllocNodeGetParams == nullptr || real.cuGraphMemFreeNodeGetParams == nullptr)
    return;
  const ErrnoGuard keep;
  effects.forget(number_of(exec));
  const bool complete = note_effects(call, exec, graph);
  say_where_left(call);
  if (!complete) call.recorder().ledger().add_reason(ledger::reason_ledger_full);
}

void graph_launched(HookedCall& call, CUgraphExec exec) {
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return;
  if (!effects.any(number_of(exec))) return;
  ledger::Writer& ledger = call.recorder().ledger();
  const ContextId context = call.recorder().contexts().owner(call.recorder().place().context);
  effects.for_each(number_of(exec), true, [&](const Effect& effect) {
    // AUTO_FREE_ON_LAUNCH frees what the last launch left.
    ledger.take(Space::pointer, DeviceAddress{effect.address});
    ledger::NewRecord record;
    record.space = Space::pointer;
    record.address.value = effect.address;
    record.bytes.value = effect.bytes;
    record.group = effect.group;
    record.context = context;
    ledger.add(record);
  });
  effects.for_each(number_of(exec), false, [&](const Effect& effect) {
    ledger.take(Space::pointer, DeviceAddress{effect.address});
  });
  say_where_left(call);
}

void forget_graphs() noexcept {
  new (&makers) NodeMakers();
  new (&effects) ExecEffects();
  seen.store(false, std::memory_order_relaxed);
}

void graph_exec_destroyed(CUgraphExec exec) {
  if (!seen.load(std::memory_order_relaxed)) return;
  effects.forget(number_of(exec));
}

}  // namespace cuwarden::families
