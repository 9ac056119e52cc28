// A ledger whose rows a test states itself, behind the reader's interface. The test program is
// linked with this instead of the real reader, so a test may choose any times, addresses and
// modules.
#pragma once

#include <vector>

#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden::test {

struct FakeLedger {
  struct Stack {
    std::vector<ledger::Frame> frames;
    bool truncated = false;
  };

  ledger::ProcessView process;
  std::vector<ledger::RecordView> records;
  std::vector<ledger::GroupView> groups;  // in each table, the row at index i has id i + 1
  std::vector<Stack> stacks;
  std::vector<ledger::ModuleView> modules;
  std::vector<ledger::ThreadView> threads;
  std::vector<ledger::SeriesView> series;
  std::vector<ledger::DeviceView> devices;
  std::vector<ledger::IncidentView> incidents;
  std::vector<ledger::IncidentHolderView> incident_holders;
  std::vector<ledger::IncidentProcessView> incident_processes;
  std::vector<ledger::SlabPageView> slab_pages;
  std::vector<ledger::IncidentRungView> incident_rungs;
  std::vector<ledger::HookView> hooks;
  std::vector<ledger::NamedCountView> unhooked_lookups;
  std::vector<ledger::NamedValueView> settings, environment;

  // Adds a stack and returns its id; ids count up from 1.
  StackId add_stack(std::vector<ledger::Frame> frames, bool truncated = false);
  GroupId add_group(StackId, HookId, Kind, DeviceOrdinal);
  void add_record(GroupId, std::uint64_t address, std::uint64_t bytes, std::uint64_t time_ns);
  ledger::ModuleView& add_module(std::string_view path, std::uint64_t base, std::uint64_t bytes);

  // The ledger must outlive the reader.
  ledger::Reader reader() const;
};

}  // namespace cuwarden::test
