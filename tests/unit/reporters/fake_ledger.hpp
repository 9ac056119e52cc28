// A ledger whose rows a test states itself, behind the reader's interface. The test program is
// linked with this instead of the real reader, so a test may choose any times, addresses and
// modules.
#pragma once

#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden::test {

// A ledger whose rows a test states itself, behind the reader's interface. In each table, the row
// at index i has the id i + 1; in `hooks` it has the id i.
struct FakeLedger {
  // A call stack of the fake ledger.
  struct Stack {
    // Addresses in the functions, innermost frame first.
    std::vector<ledger::Frame> frames;
    // True if frames are missing at the outer end.
    bool truncated = false;
  };

  ledger::ProcessView process;              // facts about the process
  std::vector<ledger::RecordView> records;  // live allocations
  // Groups: allocations with the same stack, function, kind and device. The row at index i has the
  // id i + 1.
  std::vector<ledger::GroupView> groups;
  std::vector<Stack> stacks;                         // call stacks
  std::vector<ledger::ModuleView> modules;           // files that code belongs to
  std::vector<ledger::PythonCodeView> python_codes;  // Python functions
  std::vector<ledger::ThreadView> threads;           // threads of the process
  std::vector<ledger::SeriesView> series;            // totals by kind and device
  std::vector<ledger::DeviceView> devices;           // devices that the process used
  std::vector<ledger::IncidentView> incidents;       // refused requests
  // Groups that held most memory at incidents.
  std::vector<ledger::IncidentHolderView> incident_holders;
  std::vector<ledger::IncidentProcessView> incident_processes;  // other processes at incidents
  std::vector<ledger::SlabPageView> slab_pages;                 // the driver's slabs (2 MiB units)
  std::vector<ledger::IncidentSlabView> incident_slabs;         // the driver's slabs at incidents
  std::vector<ledger::IncidentRungView> incident_rungs;    // attempts to serve refused requests
  std::vector<ledger::StepMarkView> steps;                 // marks of steps of the program
  std::vector<ledger::FrameworkPoolView> framework_pools;  // figures that frameworks give
  std::vector<ledger::HookView> hooks;                     // hooked functions with their counts
  std::vector<ledger::NamedCountView> unhooked_lookups;    // lookups of functions without a hook
  // Settings of cuwarden, and environment variables, with their values.
  std::vector<ledger::NamedValueView> settings, environment;

  // Adds a stack and returns its id; ids count up from 1.
  StackId add_stack(std::vector<ledger::Frame> frames, bool truncated = false);
  // Adds a group without allocations, and returns its id; ids count up from 1. `StackId`: its call
  // stack; `HookId`: the function that allocates.
  GroupId add_group(StackId, HookId, Kind, DeviceOrdinal);
  // Adds a live allocation to the group, and counts it there. `time_ns`: time of the allocation
  // since process start.
  void add_record(GroupId, std::uint64_t address, std::uint64_t bytes, std::uint64_t time_ns);
  // Adds a module (a file with code) and returns its row. `path`: the file's path. `base`: address
  // at which it is loaded. `bytes`: size of the range of addresses from `base` on.
  ledger::ModuleView& add_module(std::string_view path, std::uint64_t base, std::uint64_t bytes);

  // Returns a reader of this ledger, which must outlive the reader.
  ledger::Reader reader() const;
};

}  // namespace cuwarden::test
