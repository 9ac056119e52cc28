#include "tests/unit/reporters/fake_ledger.hpp"

namespace cuwarden::test {

StackId FakeLedger::add_stack(std::vector<ledger::Frame> frames, bool truncated) {
  stacks.push_back({std::move(frames), truncated});
  return {static_cast<std::uint32_t>(stacks.size())};
}

GroupId FakeLedger::add_group(StackId stack, HookId api, Kind kind, DeviceOrdinal device) {
  ledger::GroupView group;
  group.id = {static_cast<std::uint32_t>(groups.size() + 1)};
  group.stack = stack;
  group.api = api;
  group.kind = kind;
  group.device = device;
  groups.push_back(group);
  return group.id;
}

void FakeLedger::add_record(GroupId group, std::uint64_t address, std::uint64_t bytes,
                            std::uint64_t time_ns) {
  ledger::RecordView record;
  record.id = {static_cast<std::uint32_t>(records.size() + 1)};
  record.group = group;
  record.address = {address};
  record.bytes = {bytes};
  record.time_ns = time_ns;
  records.push_back(record);
  ledger::GroupView& row = groups[group.value - 1];
  ++row.allocations;
  row.allocated_bytes += bytes;
  ++row.live_count;
  row.live_bytes += bytes;
}

ledger::ModuleView& FakeLedger::add_module(std::string_view path, std::uint64_t base,
                                           std::uint64_t bytes) {
  ledger::ModuleView module;
  module.id = module.file = {static_cast<std::uint32_t>(modules.size() + 1)};
  module.path = path;
  module.base = base;
  module.start = base;
  module.end = base + bytes;
  modules.push_back(module);
  return modules.back();
}

ledger::Reader FakeLedger::reader() const {
  ledger::ReadError error;
  return *ledger::Reader::open({reinterpret_cast<const std::byte*>(this), sizeof *this}, error);
}

}  // namespace cuwarden::test

namespace cuwarden::ledger {
namespace {

const test::FakeLedger& fake(std::span<const std::byte> bytes) {
  return *reinterpret_cast<const test::FakeLedger*>(bytes.data());
}

template <class Row>
std::optional<Row> at(const std::vector<Row>& rows, std::uint64_t index) {
  return index < rows.size() ? std::optional<Row>(rows[index]) : std::nullopt;
}

}  // namespace

std::optional<Reader> Reader::open(std::span<const std::byte> bytes, ReadError&) noexcept {
  return Reader(bytes);
}
ProcessView Reader::process() const noexcept { return fake(bytes_).process; }
std::uint64_t Reader::rows(RegionId region) const noexcept {
  const test::FakeLedger& ledger = fake(bytes_);
  switch (region) {
    case RegionId::records:
      return ledger.records.size() + 1;
    case RegionId::incidents:
      return ledger.incidents.size() + 1;
    case RegionId::incident_holders:
      return ledger.incident_holders.size() + 1;
    case RegionId::incident_processes:
      return ledger.incident_processes.size() + 1;
    case RegionId::incident_rungs:
      return ledger.incident_rungs.size() + 1;
    case RegionId::incident_slabs:
      return ledger.incident_slabs.size() + 1;
    case RegionId::slab_pages:
      return ledger.slab_pages.size() + 1;
    case RegionId::groups:
      return ledger.groups.size() + 1;
    case RegionId::stacks:
      return ledger.stacks.size() + 1;
    case RegionId::frames: {
      std::uint64_t frames = 1;
      for (const auto& stack : ledger.stacks) frames += stack.frames.size();
      return frames;
    }
    case RegionId::steps:
      return ledger.steps.size() + 1;
    case RegionId::frameworks:
      return ledger.framework_pools.size() + 1;
    case RegionId::python_codes:
      return ledger.python_codes.size() + 1;
    case RegionId::modules:
      return ledger.modules.size() + 1;
    case RegionId::threads:
      return ledger.threads.size() + 1;
    case RegionId::series:
      return ledger.series.size() + 1;
    case RegionId::devices:
      return ledger.devices.size() + 1;
    case RegionId::hooks:
      return ledger.hooks.size();
    case RegionId::unhooked_lookups:
      return ledger.unhooked_lookups.size() + 1;
    case RegionId::settings:
      return ledger.settings.size() + 1;
    case RegionId::environment:
      return ledger.environment.size() + 1;
    default:
      return 0;
  }
}
std::optional<RecordView> Reader::record(std::uint64_t row) const noexcept {
  return at(fake(bytes_).records, row - 1);
}
std::optional<GroupView> Reader::group(std::uint64_t row) const noexcept {
  return at(fake(bytes_).groups, row - 1);
}
std::optional<StackView> Reader::stack(std::uint64_t row) const noexcept {
  const auto& stacks = fake(bytes_).stacks;
  if (row - 1 >= stacks.size()) return std::nullopt;
  StackView view;
  view.id = {static_cast<std::uint32_t>(row)};
  view.frames = stacks[row - 1].frames;
  view.truncated = stacks[row - 1].truncated;
  return view;
}
std::optional<PythonCodeView> Reader::python_code(std::uint64_t row) const noexcept {
  return at(fake(bytes_).python_codes, row - 1);
}
std::optional<StepMarkView> Reader::step_mark(std::uint64_t row) const noexcept {
  return at(fake(bytes_).steps, row - 1);
}
std::optional<FrameworkPoolView> Reader::framework_pool(std::uint64_t row) const noexcept {
  return at(fake(bytes_).framework_pools, row - 1);
}
std::optional<ModuleView> Reader::module(std::uint64_t row) const noexcept {
  return at(fake(bytes_).modules, row - 1);
}
std::optional<ThreadView> Reader::thread(std::uint64_t row) const noexcept {
  return at(fake(bytes_).threads, row - 1);
}
std::optional<SeriesView> Reader::series(std::uint64_t row) const noexcept {
  return at(fake(bytes_).series, row - 1);
}
std::optional<DeviceView> Reader::device(std::uint64_t row) const noexcept {
  return at(fake(bytes_).devices, row - 1);
}
std::optional<IncidentView> Reader::incident(std::uint64_t row) const noexcept {
  return at(fake(bytes_).incidents, row - 1);
}
std::optional<IncidentHolderView> Reader::incident_holder(std::uint64_t row) const noexcept {
  return at(fake(bytes_).incident_holders, row - 1);
}
std::optional<IncidentProcessView> Reader::incident_process(std::uint64_t row) const noexcept {
  return at(fake(bytes_).incident_processes, row - 1);
}
std::optional<IncidentClassView> Reader::incident_class(std::uint64_t) const noexcept {
  return std::nullopt;
}
std::optional<IncidentRungView> Reader::incident_rung(std::uint64_t row) const noexcept {
  return at(fake(bytes_).incident_rungs, row - 1);
}
std::optional<IncidentSlabView> Reader::incident_slab(std::uint64_t row) const noexcept {
  return at(fake(bytes_).incident_slabs, row - 1);
}
std::optional<SlabPageView> Reader::slab_page(std::uint64_t row, std::uint32_t) const noexcept {
  return at(fake(bytes_).slab_pages, row - 1);
}
std::optional<HookView> Reader::hook(std::uint64_t row) const noexcept {
  return at(fake(bytes_).hooks, row);
}
std::optional<NamedCountView> Reader::unhooked_lookup(std::uint64_t row) const noexcept {
  return at(fake(bytes_).unhooked_lookups, row - 1);
}
std::optional<NamedValueView> Reader::setting(std::uint64_t row) const noexcept {
  return at(fake(bytes_).settings, row - 1);
}
std::optional<NamedValueView> Reader::environment(std::uint64_t row) const noexcept {
  return at(fake(bytes_).environment, row - 1);
}
std::optional<ModuleView> Reader::module_at(Frame frame, std::uint64_t) const noexcept {
  for (const ModuleView& module : fake(bytes_).modules) {
    if (frame >= module.start && frame < module.end) return module;
  }
  return std::nullopt;
}

}  // namespace cuwarden::ledger
