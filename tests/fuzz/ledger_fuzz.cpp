// Fuzzes the ledger's reader. A ledger is a foreign file: any bytes must give a report or an error,
// in bounded time and memory. The input is a list of changes to a whole ledger, since random bytes
// would fail at the header. The first byte of the input is its FuzzMode (whole_ledger.hpp).
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reporters/json/write_report.hpp"
#include "reporters/symbols/naming.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "tests/fuzz/whole_ledger.hpp"

namespace {

using namespace cuwarden;
using namespace cuwarden::ledger;
using namespace cuwarden::test;

// Returns the offset at which a change is made. Most changes go to the starts of regions, since the
// rows lie there.
std::uint64_t changed_offset(const FuzzChange& change, const std::vector<std::byte>& ledger) {
  Header header;
  std::memcpy(&header, ledger.data(), sizeof header);
  if (change.region == 255) return change.offset % ledger.size();
  const std::size_t region = change.region % (region_count + 1);
  if (region == region_count) return change.offset % sizeof(Header);
  const Region& found = header.regions[region];
  const std::uint64_t used = (found.used.load() + 2) * std::uint64_t{found.row_bytes};
  return (found.offset + change.offset % used) % ledger.size();
}

// Makes the report of the ledger. Its output must be JSON.
void report(std::span<const std::byte> bytes, bool with_symbols) {
  static const int file = memfd_create("report", MFD_CLOEXEC);
  static std::string text;
  ReadError wrong;
  const auto reader = Reader::open(bytes, wrong);
  if (!reader) return;
  if (ftruncate(file, 0) != 0 || lseek(file, 0, SEEK_SET) != 0) std::abort();
  Output output(file);
  // libbacktrace never frees what it has read of a file, so each file is read once for all inputs.
  static SymbolBudget budget;
  static Naming naming(budget);
  ReportOptions options;
  options.symbolise = with_symbols;
  options.naming = &naming;
  LedgerReport report(*reader, options);
  write_report_json(report, output);
  if (output.finish() != 0) std::abort();
  text.resize(static_cast<std::size_t>(lseek(file, 0, SEEK_END)));
  if (pread(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) std::abort();
  if (!nlohmann::json::accept(text)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  static const std::vector<std::byte> whole = whole_ledger();
  if (size < 1) return 0;
  const std::uint8_t mode = input[0];
  ++input;
  --size;
  // As a mapped file, the bytes begin at a page, and the page behind them cannot be read.
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
    std::memcpy(&cut, input, sizeof cut);
    length = cut % whole.size();
    input += sizeof cut;
    size -= sizeof cut;
  }
  for (FuzzChange change; size >= sizeof change; input += sizeof change, size -= sizeof change) {
    std::memcpy(&change, input, sizeof change);
    const std::uint64_t at = changed_offset(change, whole);
    std::memcpy(pages + at, &change.value,
                std::min<std::size_t>(sizeof change.value, whole.size() - at));
  }
  if ((mode & mend_header) != 0) {
    auto& header = *reinterpret_cast<Header*>(pages);
    header.magic = magic;
    header.version = layout_version;
    header.header_bytes = sizeof(Header);
    header.published = 1;
    header.checksum = header_checksum(header);
  }
  report({pages, length}, (mode & with_names) == with_names);
  return 0;
}
