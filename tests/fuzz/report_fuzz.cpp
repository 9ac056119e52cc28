// Fuzzes the functions that read reports. A report is a foreign file: with any contents, it must be
// shown, or be refused by one line. The input is a list of changes to a whole report, since random
// text would rarely be JSON. If its first byte is 0, the rest of the input is the report itself.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reporters/json/read_report.hpp"
#include "reporters/json/write_report.hpp"
#include "reporters/text/elements/leak_check.hpp"
#include "reporters/text/text_report.hpp"
#include "tests/fuzz/whole_ledger.hpp"

namespace {

using namespace cuwarden;
using nlohmann::json;

constexpr const char* clear_screen = "\x1b[2J";
constexpr const char* turn_around = "\xe2\x80\xae";

// A file in memory that has no name, and a path by which it can be opened.
struct File {
  int descriptor = memfd_create("report", MFD_CLOEXEC);
  std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  void hold(const std::string& text) const {
    if (ftruncate(descriptor, 0) != 0 ||
        pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      std::abort();
    }
  }
};

json whole_report() {
  const std::vector<std::byte> bytes = test::whole_ledger();
  ledger::ReadError wrong;
  const auto reader = ledger::Reader::open(bytes, wrong);
  if (!reader) std::abort();
  const File file;
  Output output(file.descriptor);
  ReportOptions options;
  options.symbolise = false;
  LedgerReport report(*reader, options);
  write_report_json(report, output);
  output.finish();
  std::ifstream written(file.path);
  json whole = json::parse(written);
  close(file.descriptor);
  // Keeps a few rows of each table. Otherwise most of the report would be its timeline.
  constexpr std::size_t most_rows = 4;
  for (json& table : whole) {
    if (table.is_array() && table.size() > most_rows) {
      table.erase(table.begin() + most_rows, table.end());
    }
  }
  return whole;
}

void collect(json& node, std::vector<json*>& all) {
  all.push_back(&node);
  if (!node.is_structured()) return;
  for (json& child : node) collect(child, all);
}

json replacement(std::uint8_t which, const std::vector<json*>& nodes) {
  switch (which % 12) {
    case 0:
      return nullptr;
    case 1:
      return -1;
    case 2:
      return std::numeric_limits<std::uint64_t>::max();
    case 3:
      return std::numeric_limits<std::int64_t>::min();
    case 4:
      return 1e300;
    case 5:
      return true;
    case 6:
      return "";
    case 7:
      return std::string(clear_screen) + turn_around + "\n\u00e9" + std::string(1, '\0');
    case 8:
      return json::array();
    case 9:
      return json::object();
    case 10:
      return which;
    default:
      return *nodes[which * nodes.size() / 256];  // a copy of another value of the report
  }
}

void change(json& report, const std::uint8_t* bytes) {
  std::vector<json*> nodes;
  collect(report, nodes);
  const std::size_t index = bytes[0] + 256u * bytes[1];
  json& node = *nodes[index % nodes.size()];
  const std::uint8_t how = bytes[2];
  if (how < 192 || !node.is_structured() || node.empty()) {
    const json value = replacement(how, nodes);
    node = value;
  } else if (node.is_object()) {
    node.erase(std::next(node.begin(), static_cast<std::ptrdiff_t>(how % node.size())));
  } else {
    const json twice = node[how % node.size()];
    node.push_back(twice);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  static const json whole = whole_report();
  static const File file;
  if (size < 2) return 0;
  const std::uint8_t mode = input[0], how = input[1];
  input += 2;
  size -= 2;
  if (mode == 0) {
    file.hold(std::string(reinterpret_cast<const char*>(input), size));
  } else {
    json report = whole;
    for (int count = 0; size >= 3 && count < 16; ++count, input += 3, size -= 3) {
      change(report, input);
    }
    // A change may leave text that is not UTF-8.
    file.hold(report.dump(-1, ' ', false, json::error_handler_t::ignore));
  }

  std::string error;
  auto report = load_report(file.path, error);
  if (report.has_value() != error.empty() || error.find('\n') != error.npos) std::abort();
  if (!report) return 0;
  TextOptions options;
  options.by = static_cast<GroupBy>(how & 3);
  options.colour = (how & 4) != 0;
  options.top = how >> 6;
  if ((how & 8) != 0) options.min_bytes = 5000;
  if ((how & 16) != 0) options.module = "lib";
  const IndexedReport indexed(std::move(*report));
  const std::string text = text_report(indexed, options);
  check_leaks(indexed, options.module);
  // The text may contain no control sequence beside cuwarden's own colours, and no character that
  // reverses the direction of a line.
  if (!options.colour && text.find('\x1b') != text.npos) std::abort();
  if (text.find(clear_screen) != text.npos || text.find(turn_around) != text.npos) std::abort();
  return 0;
}
