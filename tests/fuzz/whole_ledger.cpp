#include "tests/fuzz/whole_ledger.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/allocation_records/virtual_memory.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/incidents.hpp"
#include "runtime_hooks/ledger/write/names.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::test {

using namespace ledger;

std::vector<std::byte> whole_ledger() {
  std::string folder = std::filesystem::temp_directory_path() / "ledger-fuzz-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::array<const char*, 1> folders = {folder.c_str()};
  const std::array<std::string_view, 2> hooks = {"cudaMalloc", "cuMemCreate"};
  const std::uint64_t smallest = plan_geometry(page_bytes, hooks.size()).total_bytes;
  Writer* const writer = Writer::create({.folders = folders,
                                         .hook_names = hooks,
                                         .report_path = "/reports/report.json",
                                         .largest_file_bytes = smallest});
  if (writer == nullptr || writer->file.path().empty()) std::abort();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    // All frames are in this program. Frames in other files would make each look-up of names read
    // those files.
    const std::array<Frame, 3> frames = {reinterpret_cast<Frame>(&whole_ledger) + i,
                                         reinterpret_cast<Frame>(&whole_ledger), i};
    const Kind kind = static_cast<Kind>(i % kind_count);
    // There are few pairs of kind and device, since each has a timeline, which makes a report long.
    const DeviceOrdinal device{kind == Kind::pinned ? -1 : i < 3 ? 1 : 0};
    const GroupId group =
        writer->groups.get({writer->stacks.intern(frames, i % 2 == 0), HookId{0}, kind, device});
    NewRecord record;
    record.space = Space::pointer;
    record.address = DeviceAddress{i << 21};
    record.bytes = ByteCount{i * 1000};
    record.group = group;
    writer->allocations.add(record);
    record.address = DeviceAddress{i};
    writer->virtual_memory.created(record);
    writer->virtual_memory.mapped(DeviceAddress{i << 30}, ByteCount{2 << 20}, DeviceAddress{i},
                                  group);
    if (i % 4 == 0) writer->allocations.take(Space::pointer, DeviceAddress{i << 21});
    const Refused refused = writer->incidents.refused(group, {.bytes = 512}, {}, i);
    if (refused.first) {
      writer->incidents.add_rung(refused.incident, {1, Rung::retry, RungOutcome::served, 1000, {}});
      writer->incidents.rescued(refused.incident, Rung::retry, 512);
      writer->incidents.add_slab_class(refused.incident, {512, 1, i, 512 * i});
      const SlabRow slab{DeviceAddress{i << 21}, i, 512 * i, {group}};
      writer->incidents.add_slabs(refused.incident, {&slab, 1});
      IncidentFacts facts;
      IncidentHoldings holdings;
      writer->incidents.measure(device, facts, holdings);
      writer->incidents.write(refused.incident, facts, holdings);
    }
  }
  const std::uint8_t uuid[16] = {1, 2, 3};
  writer->devices.identify({0}, "a device", uuid);
  writer->devices.note_reading({0}, {ReadingAt::exit, 1 << 30, 1 << 20, 1 << 10});
  writer->devices.change_implicit({0}, {.used_after_first_context_bytes = 1 << 29,
                                        .local_memory_bytes = 1 << 12,
                                        .largest_local_bytes = 1 << 14,
                                        .largest_local_kernel = "deep"});
  writer->names.count_unhooked_lookup("cuMemFuture");
  writer->names.set_setting("CUWARDEN_LOG", "warn", true);
  writer->names.set_environment("CUDA_VISIBLE_DEVICES", "0");
  writer->totals.sample_host_rss(1 << 20, writer->time.now_ns());
  writer->set_end(EndReason::exit, 0, true);
  std::ifstream file(std::string(writer->file.path()), std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove_all(folder);
  std::vector<std::byte> ledger(bytes.size());
  std::memcpy(ledger.data(), bytes.data(), bytes.size());
  return ledger;
}

}  // namespace cuwarden::test
