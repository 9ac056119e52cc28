// The parts that a writer is made of.
//
// Lock order, outer to inner: the loader's own lock > virtual memory > stacks, groups > series >
// a shard of the records, modules > a region's fill. The timeline and the peak of a series,
// and the holders of slabs, are only ever tried. No lock is held while foreign code is called.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/ledger/storage/lanes.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/group_table.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/module_table.hpp"
#include "runtime_hooks/ledger/write/record_index.hpp"
#include "runtime_hooks/ledger/write/slab_pages.hpp"
#include "runtime_hooks/ledger/write/stack_table.hpp"
#include "runtime_hooks/ledger/write/totals.hpp"
#include "runtime_hooks/ledger/write/virtual_memory.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::ledger {

struct Writer::State {
  Storage storage;
  Lanes lanes{storage};
  RecordIndex records{storage};
  Totals totals{storage, lanes};
  SlabPages slabs{storage, lanes};
  ModuleTable modules{storage};
  StackTable stacks{storage, modules};
  GroupTable groups{storage, lanes, totals};
  Incidents incidents{storage};
  VirtualMemory virtual_memory{storage, records, totals};
  FutexLock names_lock;    // unhooked lookups, settings, environment
  FutexLock devices_lock;  // device rows
  std::uint64_t start_monotonic_ns = 0;
  Writer self{*this};

  ThreadId register_thread(std::uint64_t now_ns) noexcept;
  // The device's row, made if need be. Under devices_lock.
  Device* device(DeviceOrdinal) noexcept;
  void set_named_value(RegionId, std::string_view name, std::string_view value,
                       std::uint32_t source) noexcept;
};

}  // namespace cuwarden::ledger
