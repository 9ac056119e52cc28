#include "tests/fuzz/whole_ledger.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
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
  if (writer == nullptr || writer->path().empty()) std::abort();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    // Of this program only: another file's names would be read each time that names are asked for.
    const std::array<Frame, 3> frames = {reinterpret_cast<Frame>(&whole_ledger) + i,
                                         reinterpret_cast<Frame>(&whole_ledger), i};
    const Kind kind = static_cast<Kind>(i % kind_count);
    // Few pairs: each has a timeline, and they are most of a report.
    const DeviceOrdinal device{kind == Kind::pinned ? -1 : i < 3 ? 1 : 0};
    const GroupId group =
        writer->group({writer->intern_stack(frames, i % 2 == 0), HookId{0}, kind, device});
    NewRecord record;
    record.space = Space::pointer;
    record.address = DeviceAddress{i << 21};
    record.bytes = ByteCount{i * 1000};
    record.group = group;
    writer->add(record);
    record.address = DeviceAddress{i};
    writer->handle_created(record);
    writer->mapped(DeviceAddress{i << 30}, ByteCount{2 << 20}, DeviceAddress{i}, group);
    if (i % 4 == 0) writer->take(Space::pointer, DeviceAddress{i << 21});
    const Writer::Refused refused = writer->refused({.group = group, .bytes = {512}});
    if (refused.first) {
      writer->add_rung(refused.incident, {1, Rung::retry, RungOutcome::served, 1000, {}});
      writer->rescued(refused.incident, Rung::retry, ByteCount{512});
      writer->add_slab_class(refused.incident, {512, 1, i, 512 * i});
      const Writer::SlabRow slab{DeviceAddress{i << 21}, i, 512 * i};
      writer->add_slabs(refused.incident, {&slab, 1});
      writer->publish_incident(refused.incident);
    }
  }
  const std::uint8_t uuid[16] = {1, 2, 3};
  writer->set_device({0}, "a device", uuid);
  writer->read_device({0}, {ReadingAt::exit, 1 << 30, 1 << 20, 1 << 10});
  writer->change_implicit({0}, {.used_after_first_context_bytes = 1 << 29,
                                .local_memory_bytes = 1 << 12,
                                .largest_local_bytes = 1 << 14,
                                .largest_local_kernel = "deep"});
  writer->count_unhooked_lookup("cuMemFuture");
  writer->set_setting("CUWARDEN_LOG", "warn", true);
  writer->set_environment("CUDA_VISIBLE_DEVICES", "0");
  writer->sample_host_rss(ByteCount{1 << 20});
  writer->set_end(EndReason::exit, 0, true);
  std::ifstream file(std::string(writer->path()), std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove_all(folder);
  std::vector<std::byte> ledger(bytes.size());
  std::memcpy(ledger.data(), bytes.data(), bytes.size());
  return ledger;
}

}  // namespace cuwarden::test
