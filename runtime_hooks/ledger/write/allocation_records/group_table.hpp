// The table of groups: one for each combination of call stack, CUDA function, kind and device.
#pragma once

#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/storage/id_table.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"

namespace cuwarden::ledger {

// The key of a group: allocations with equal keys are counted together in one row of the groups
// table.
struct GroupKey {
  StackId stack;  // call stack of the allocations; 0: none was recorded
  // The outermost CUDA function that the program called; no_function for blocks of frameworks.
  HookId api;
  Kind kind{};                       // kind of the allocated memory
  DeviceOrdinal device = no_device;  // device of the memory; no_device: host memory
  bool operator==(const GroupKey&) const = default;
};

// Finds and makes the rows of the ledger's groups table. All threads may call the functions at any
// time after create().
class GroupTable {
 public:
  // The arguments are parts of one ledger's writer, which the object uses and does not own. They
  // must outlive it.
  GroupTable(Storage& storage, ThreadShards& thread_shards, Totals& totals) noexcept
      : storage_(storage), thread_shards_(thread_shards), totals_(totals) {}
  // Maps memory for the index of the groups; must be called before get(). Returns false if there is
  // no memory.
  bool create() noexcept { return ids_.create(); }

  // Returns the id of the group with this key, and makes a row for a new group. Returns 0 if the
  // table is full (reason_ledger_full), or if the table's lock cannot be had.
  GroupId get(const GroupKey& key) noexcept {
    const std::uint64_t what = std::uint64_t{key.api.value} << 40 |
                               std::uint64_t{static_cast<std::uint8_t>(key.kind)} << 32 |
                               static_cast<std::uint32_t>(key.device.value);
    const std::uint64_t hash = hash_pair(key.stack.value, what);
    Group* const groups = storage_.rows<Group>(RegionId::groups);
    const auto matches = [&](std::uint32_t row) {
      const Group& group = groups[row];
      return group.stack == key.stack.value && group.api == key.api.value &&
             group.kind == key.kind && group.device == key.device.value;
    };
    if (const std::uint32_t row = ids_.find(hash, matches)) return GroupId{row};
    const LedgerLocked locked(ids_.lock(), storage_);
    if (!locked) return {};
    if (const std::uint32_t row = ids_.find(hash, matches)) return GroupId{row};
    const auto row = static_cast<std::uint32_t>(storage_.allocate(RegionId::groups, 1));
    if (row == 0) {
      storage_.add_reason(reason_ledger_full);
      return {};
    }
    Group& group = groups[row];
    group.stack = key.stack.value;
    group.api = key.api.value;
    group.kind = key.kind;
    group.device = key.device.value;
    group.shard = static_cast<std::uint8_t>(thread_shards_.mine().number());
    totals_.adopt(GroupId{row});
    group.state.store(1, std::memory_order_release);
    ids_.insert(hash, row);
    return GroupId{row};
  }

  // Returns the device of the group `id`; no_device for host memory. `id` must not be 0.
  DeviceOrdinal device_of(GroupId id) const noexcept {
    return DeviceOrdinal{storage_.rows<Group>(RegionId::groups)[id.value].device};
  }
  // Returns the kind of memory that the group `id` has. `id` must not be 0.
  Kind kind_of(GroupId id) const noexcept {
    return storage_.rows<Group>(RegionId::groups)[id.value].kind;
  }
  // Returns the call stack of the group `id`; 0 if `id` is 0, or if the group has no stack.
  StackId stack_of(GroupId id) const noexcept {
    return StackId{storage_.rows<Group>(RegionId::groups)[id.value].stack};
  }
  // Returns the group with the call stack of the group `known`, and with this function `api`, kind
  // and device. Makes a row for a new group. Returns 0 if the table is full or its lock cannot be
  // had. `known` must not be 0.
  GroupId of_stack_in(GroupId known, HookId api, Kind kind, DeviceOrdinal device) noexcept {
    const Group& group = storage_.rows<Group>(RegionId::groups)[known.value];
    if (group.api == api.value && group.kind == kind && group.device == device.value) return known;
    return get({StackId{group.stack}, api, kind, device});
  }

 private:
  Storage& storage_;             // the memory of the ledger, with its tables
  ThreadShards& thread_shards_;  // each thread's own counters
  // Counters of groups and of series (all memory of one kind on one device). Each new group is
  // entered there.
  Totals& totals_;
  IdTable ids_;  // finds rows of groups by their keys; its lock is held while a row is made
};

}  // namespace cuwarden::ledger
