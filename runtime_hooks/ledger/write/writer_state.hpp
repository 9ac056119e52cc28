// The objects of which a writer consists.
//
// Lock order, outer to inner: the loader's own lock > virtual memory > stacks, groups > making of a
// series > a partition of the records, modules > growth of a region. The locks of a series'
// timeline and peak, and of the slabs' holders, are only tried, never waited for. The locks of
// devices, names, steps, frameworks and Python functions are taken while none of the others is
// held; only growth is taken under them. No lock is held while foreign code is called.
#pragma once

#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/record_index.hpp"
#include "runtime_hooks/ledger/write/allocation_records/slab_pages.hpp"
#include "runtime_hooks/ledger/write/allocation_records/threads.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/allocation_records/virtual_memory.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/frameworks.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "runtime_hooks/ledger/write/stacks/module_table.hpp"
#include "runtime_hooks/ledger/write/stacks/python_table.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "runtime_hooks/ledger/write/steps.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::ledger {

// All objects of a writer: the storage, the clock and the tables. Each object is declared after
// those that it uses.
struct Writer::State {
  Storage storage;                      // the ledger's file or memory, with all its tables
  ProcessTime time;                     // the clock of all times in the ledger
  ThreadShards thread_shards{storage};  // each thread's own counters
  Threads threads{storage, thread_shards, time};  // rows of threads that made recorded calls
  // Rows of allocation records, found by address and by its space: the kind of number that the
  // address is, such as a pointer or a handle.
  RecordIndex records{storage};
  // Counters of groups, and of all memory of one kind on one device.
  Totals totals{storage, thread_shards};
  // Contents of the driver's slabs: 2 MiB units from which it cuts small allocations.
  SlabPages slabs{storage, thread_shards};
  // Adds and ends allocation records, except those of virtual memory.
  Allocations allocations{storage, records, totals, slabs, threads, time};
  ModuleTable modules{storage};                       // rows of loaded object files
  StackTable stacks{storage, modules};                // rows of call stacks
  PythonTable python{storage};                        // rows of Python functions
  GroupTable groups{storage, thread_shards, totals};  // rows of groups, found by their keys
  Incidents incidents{storage};                       // rows of incidents (refused requests)
  // Adds and ends the records of virtual memory.
  VirtualMemory virtual_memory{storage, records, totals, threads, time};
  Devices devices{storage, time};        // rows of CUDA devices
  Names names{storage};                  // settings, environment variables, unhooked functions
  Steps steps{storage, time};            // rows of the steps that the program marked
  Frameworks frameworks{storage, time};  // figures that frameworks give of their own memory
  Writer self{*this};                    // the public part, which Writer::create() returns
};

}  // namespace cuwarden::ledger
