// Tells the ledger what graphs allocate and free. If the tables of memory nodes are full, the
// report says so. A program without memory nodes pays one relaxed load for each launch.
#include "runtime_hooks/hooks/graphs/graph_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/memory/own_memory.hpp"
#include "runtime_hooks/hooks/graphs/node_tables.hpp"
#include "runtime_hooks/ledger/format/record_fields.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"

namespace cuwarden::hooks {
namespace {

constinit NodeMakers makers;
constinit ExecEffects effects;
constinit std::atomic<bool> seen{false};

std::uint64_t number_of(CUgraphExec exec) { return reinterpret_cast<std::uint64_t>(exec); }

void say_where_left(HookedCall& call) {
  if (makers.left() || effects.left()) call.graphs().incomplete(ledger::reason_recording_stopped);
}

}  // namespace

void graph_node_created(HookedCall& call, CUresult result, CUdeviceptr address, std::uint64_t bytes,
                        DeviceOrdinal device) {
  if (!call.recording() || result != CUDA_SUCCESS || address == 0) return;
  seen.store(true, std::memory_order_relaxed);
  call.graphs().uses(device);
  makers.made(address, bytes, call.graphs().sites.group_of(call.caller(), Kind::graph, device));
  say_where_left(call);
}

namespace {

// Anonymous memory for `limit` values of a type that needs no construction.
template <class Value>
class Mapped {
 public:
  // NOLINTNEXTLINE(bugprone-sizeof-expression): a value may be a pointer, as a node is
  explicit Mapped(std::size_t limit) : bytes_(limit * sizeof(Value)) {
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    values_ = static_cast<Value*>(memory);
    OwnMemory::add(values_, bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (values_ == nullptr) return;
    OwnMemory::remove(values_);
    munmap(values_, bytes_);
  }
  Value* values() const { return values_; }  // null if there was no memory for them

 private:
  std::size_t bytes_;
  Value* values_ = nullptr;
};

struct MemoryNode {
  Effect effect;
  DeviceOrdinal device;
  std::uint64_t order = 0;  // number of the call that made the node, rising; 0: unknown
};

// Works out from the memory nodes of one graph how a launch changes the set of live allocations.
class MemoryNodes {
 public:
  MemoryNodes(HookedCall& call, CUgraphExec exec) : call_(call), exec_(number_of(exec)) {}

  // Stores the effects of launching the graph. Returns false if not all of them could be stored.
  bool note(CUgraph graph) {
    if (!read(graph, 0)) return false;
    std::sort(nodes_, nodes_ + count_, [](const MemoryNode& a, const MemoryNode& b) {
      return std::pair(a.effect.address, !a.effect.allocates) <
             std::pair(b.effect.address, !b.effect.allocates);
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_;) {
      std::size_t end = i;
      while (end < count_ && nodes_[end].effect.address == nodes_[i].effect.address) ++end;
      kept = settle(i, end, kept);
      i = end;
    }
    // The latest node comes first: ExecEffects hands out the effect that was added last first, so a
    // launch applies them in the order in which the nodes were made.
    std::sort(nodes_, nodes_ + kept,
              [](const MemoryNode& a, const MemoryNode& b) { return a.order > b.order; });
    return std::all_of(nodes_, nodes_ + kept,
                       [](const MemoryNode& node) { return effects.add(node.effect); });
  }

 private:
  // Most nodes that are kept in all, and most that are kept without mapping memory for them.
  static constexpr std::size_t limit = 8192, few = 32;
  static constexpr int deepest_child = 8;

  // Reads the memory nodes of the graph and of its child graphs. Returns false if some were not
  // read.
  bool read(CUgraph graph, int depth) {
    const driver::RealDriver& real = call_.real();
    std::size_t count = 0;
    if (real.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) return false;
    if (count == 0) return true;
    CUgraphNode few_nodes[few];
    std::optional<Mapped<CUgraphNode>> mapped;
    if (count > few) mapped.emplace(count);
    CUgraphNode* const list = mapped ? mapped->values() : few_nodes;
    if (list == nullptr || real.cuGraphGetNodes(graph, list, &count) != CUDA_SUCCESS) return false;
    return std::all_of(list, list + count,
                       [&](CUgraphNode node) { return read_node(node, depth); });
  }

  // Makes room for `limit` nodes. Returns false if there is no memory, or was room for so many.
  bool make_room() {
    if (mapped_) return false;
    mapped_.emplace(limit);
    if (mapped_->values() == nullptr) return false;
    nodes_ = std::copy(nodes_, nodes_ + count_, mapped_->values()) - count_;
    room_ = limit;
    return true;
  }

  bool read_node(CUgraphNode node, int depth) {
    const driver::RealDriver& real = call_.real();
    CUgraphNodeType type{};
    if (real.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) return true;
    MemoryNode found;
    found.effect.exec = exec_;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      if (real.cuGraphChildGraphNodeGetGraph == nullptr ||
          real.cuGraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS)
        return true;
      return depth < deepest_child && read(child, depth + 1);
    }
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
      if (real.cuGraphMemAllocNodeGetParams(node, &parameters) != CUDA_SUCCESS) return true;
      found.effect.address = parameters.dptr;
      found.effect.bytes = parameters.bytesize;
      found.effect.allocates = true;
      found.device = DeviceOrdinal{parameters.poolProps.location.id};
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      CUdeviceptr address = 0;
      if (real.cuGraphMemFreeNodeGetParams(node, &address) != CUDA_SUCCESS) return true;
      found.effect.address = address;
    } else {
      return true;
    }
    if (count_ == room_ && !make_room()) return false;
    nodes_[count_++] = found;
    return true;
  }

  // Decides what a launch does to one address. The nodes from `begin` to `end` all have this
  // address: first the allocations, then the frees. The kept nodes are written to nodes_ from index
  // `kept` on; the index behind the last one is returned.
  //
  // Within a graph, the driver reuses an address only after a free of it. So every allocation but
  // the last is freed before the next one, and graph_launched() counts that free when it begins the
  // next allocation. A free that is left over comes after the last allocation.
  std::size_t settle(std::size_t begin, std::size_t end, std::size_t kept) {
    std::size_t frees = begin;
    while (frees < end && nodes_[frees].effect.allocates) ++frees;
    const std::size_t allocations = frees - begin;
    NodeMakers::Maker makers_here[NodeMakers::most_of_one_address];
    const std::size_t known = makers.makers_of(nodes_[begin].effect.address, makers_here);
    const bool is_freed = end - frees >= std::max<std::size_t>(allocations, 1);
    const MemoryNode last_free = nodes_[end - 1];
    for (std::size_t i = 0; i < allocations; ++i) {
      MemoryNode node = nodes_[begin + i];
      if (i < known) {
        // The driver lists nodes in any order, so the sizes of several nodes of one address come
        // from the calls that made them.
        if (allocations > 1) node.effect.bytes = makers_here[i].bytes;
        node.effect.group = makers_here[i].group;
        node.order = makers_here[i].order;
      } else if (known != 0) {
        node.effect.group = makers_here[known - 1].group;
      } else {
        node.effect.group = call_.graphs().sites.group_of(call_.caller(), Kind::graph, node.device);
      }
      nodes_[kept++] = node;
    }
    if (is_freed) nodes_[kept++] = last_free;
    return kept;
  }

  HookedCall& call_;
  std::uint64_t exec_;
  MemoryNode few_nodes_[few];
  std::optional<Mapped<MemoryNode>> mapped_;
  // The nodes: in `few_nodes_`, or in `mapped_` if they are more.
  MemoryNode* nodes_ = few_nodes_;
  std::size_t count_ = 0, room_ = few;
};

}  // namespace

void graph_instantiated(HookedCall& call, CUgraphExec exec, CUgraph graph) {
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return;
  const driver::RealDriver& real = call.real();
  if (real.cuGraphGetNodes == nullptr || real.cuGraphNodeGetType == nullptr ||
      real.cuGraphMemAllocNodeGetParams == nullptr || real.cuGraphMemFreeNodeGetParams == nullptr)
    return;
  const ErrnoGuard keep;
  effects.forget(number_of(exec));
  const bool complete = MemoryNodes(call, exec).note(graph);
  say_where_left(call);
  if (!complete) call.graphs().incomplete(ledger::reason_ledger_full);
}

void graph_launched(HookedCall& call, CUgraphExec exec) {
  if (!call.recording() || !graph_has_memory(exec)) return;
  call.execution().implicit.bases.memory_may_change();
  const GraphParts parts = call.graphs();
  const ContextId context = parts.current_owner();
  effects.for_each(number_of(exec), true, [&](const Effect& effect) {
    // A record that still has this address was freed by a node of the same graph, or by
    // AUTO_FREE_ON_LAUNCH.
    parts.records.take(Space::pointer, DeviceAddress{effect.address});
    ledger::NewRecord record;
    record.space = Space::pointer;
    record.address.value = effect.address;
    record.bytes.value = effect.bytes;
    record.group = effect.group;
    record.context = context;
    parts.records.add(record);
  });
  effects.for_each(number_of(exec), false, [&](const Effect& effect) {
    parts.records.take(Space::pointer, DeviceAddress{effect.address});
  });
  say_where_left(call);
}

bool graph_has_memory(CUgraphExec exec) noexcept {
  return seen.load(std::memory_order_relaxed) && effects.any(number_of(exec));
}

DeviceOrdinal device_of_graph(HookedCall& call, CUgraphExec exec) noexcept {
  DeviceOrdinal device = no_device;
  if (!call.recording() || !seen.load(std::memory_order_relaxed)) return device;
  effects.for_each(number_of(exec), true, [&](const Effect& effect) {
    if (device == no_device) device = call.graphs().groups.device_of(effect.group);
  });
  return device;
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

}  // namespace cuwarden::hooks
