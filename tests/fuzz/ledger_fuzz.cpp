// A ledger is somebody else's file: whatever its bytes are, it gives a report or an error, in
// bounded time and memory. The input is a list of changes to a whole ledger (an offset and eight
// bytes each), for bytes taken as they come would not pass the header; the first byte says how the
// rest is meant.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "reporters/report_json.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/ledger/geometry.hpp"
#include "runtime_hooks/ledger/writer.hpp"

namespace {

using namespace cuwarden;
using namespace cuwarden::ledger;

enum Mode : std::uint8_t { as_it_comes = 1, mend_header = 2, cut_short = 4, symbolise = 8 };

// One of everything, in a file as small as a ledger can be.
std::vector<std::byte> whole_ledger() {
  std::string folder = std::filesystem::temp_directory_path() / "ledger-fuzz-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::array<const char*, 1> folders = {folder.c_str()};
  const std::array<std::string_view, 2> hooks = {"cudaMalloc", "cuMemCreate"};
  Writer* const writer = Writer::create({.folders = folders,
                                         .hook_names = hooks,
                                         .report_path = "/reports/report.json",
                                         .largest_file_bytes = 1 << 18});
  if (writer == nullptr || writer->path().empty()) std::abort();
  for (std::uint64_t i = 1; i <= 20; ++i) {
    const std::array<Frame, 3> frames = {reinterpret_cast<Frame>(&whole_ledger) + i,
                                         reinterpret_cast<Frame>(&std::abort), i};
    const Kind kind = static_cast<Kind>(i % kind_count);
    const DeviceOrdinal device{static_cast<std::int32_t>(i % 3) - 1};
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
    writer->count_failure(group);
  }
  const std::uint8_t uuid[16] = {1, 2, 3};
  writer->set_device({0}, "a device", uuid);
  writer->read_device({0}, ReadingAt::exit, ByteCount{1 << 30}, ByteCount{1 << 20});
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

// Rows lie at the starts of regions: most offsets go there.
std::uint64_t place_of(std::uint32_t choice, const std::vector<std::byte>& ledger) {
  Header header;
  std::memcpy(&header, ledger.data(), sizeof header);
  const std::uint32_t region = choice >> 24;
  const std::uint64_t offset = choice & 0xffffff;
  if (region == 255) return offset % ledger.size();
  if (region % (region_count + 1) == region_count) return offset % sizeof(Header);
  const Region& found = header.regions[region % (region_count + 1)];
  const std::uint64_t used = (found.used.load() + 2) * std::uint64_t{found.row_bytes};
  return (found.offset + offset % used) % ledger.size();
}

void report(std::span<const std::byte> bytes, bool with_symbols) {
  ReadError error;
  const auto reader = Reader::open(bytes, error);
  if (!reader) return;
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  Output output(nowhere);
  ReportOptions options;
  options.symbolise = with_symbols;
  write_report_json(*reader, options, output);
  output.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  static const std::vector<std::byte> whole = whole_ledger();
  if (size < 1) return 0;
  const std::uint8_t mode = input[0];
  ++input;
  --size;
  // Page-aligned, as a mapped file is, with nothing readable behind it.
  const std::size_t room = round_up(whole.size(), page_bytes);
  static auto* const pages = static_cast<std::byte*>(
      mmap(nullptr, room + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + room, page_bytes, PROT_NONE);
  if ((mode & as_it_comes) != 0) {
    const std::size_t used = std::min(size, room);
    std::byte* const start = pages + (room - used) / 64 * 64;
    std::memcpy(start, input, used);
    report({start, used}, false);
    return 0;
  }
  std::memcpy(pages, whole.data(), whole.size());
  std::size_t length = whole.size();
  if ((mode & cut_short) != 0 && size >= 4) {
    std::uint32_t cut = 0;
    std::memcpy(&cut, input, 4);
    length = cut % whole.size();
  }
  for (; size >= 12; input += 12, size -= 12) {
    std::uint32_t choice = 0;
    std::memcpy(&choice, input, 4);
    const std::uint64_t at = place_of(choice, whole);
    std::memcpy(pages + at, input + 4, std::min<std::size_t>(8, whole.size() - at));
  }
  if ((mode & mend_header) != 0) {
    auto& header = *reinterpret_cast<Header*>(pages);
    header.magic = magic;
    header.version = layout_version;
    header.header_bytes = sizeof(Header);
    header.published = 1;
    header.checksum = header_checksum(header);
  }
  report({pages, length}, (mode & symbolise) != 0);
  return 0;
}
