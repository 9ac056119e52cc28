// ledger_seeds FOLDER: writes the inputs with which ledger_fuzz begins. For each table there are
// changes to its first rows. Other inputs are a cut file, a header alone, and one that looks up
// names.
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "runtime_hooks/ledger/format/layout.hpp"
#include "tests/fuzz/whole_ledger.hpp"

namespace {

using namespace cuwarden;
using test::FuzzChange;

bool write_seed(const std::filesystem::path& path, unsigned mode, const void* data,
                std::size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.put(static_cast<char>(mode));
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  return file.flush().good();
}

bool write_seeds(const std::filesystem::path& folder) {
  const std::vector<std::byte> whole = test::whole_ledger();
  bool good = true;
  const auto seed = [&](const std::string& name, unsigned mode, const auto& changes) {
    good = write_seed(folder / name, mode, changes.data(), changes.size() * sizeof(changes[0])) &&
           good;
  };
  constexpr std::array<std::uint64_t, 4> values = {UINT64_MAX, 0x1000000000000, UINT64_MAX >> 1,
                                                   0x0101010101010101};
  for (std::uint32_t region = 0; region <= ledger::region_count; ++region) {
    std::vector<FuzzChange> changes;
    for (std::uint32_t offset = 0; offset < 256; offset += 64) {
      changes.push_back({offset + 8, region, values[offset / 64]});
    }
    seed("region-" + std::to_string(region), test::mend_header, changes);
    seed("named-region-" + std::to_string(region), test::mend_header | test::with_names, changes);
  }
  seed("unchanged", test::mend_header, std::array<FuzzChange, 0>{});
  seed("unchanged-named", test::mend_header | test::with_names, std::array<FuzzChange, 0>{});
  for (std::size_t part = 1; part < 8; ++part) {
    const std::array<std::uint32_t, 1> length = {
        static_cast<std::uint32_t>(whole.size() * part / 8 + 40)};
    seed("cut-" + std::to_string(part), test::mend_header | test::cut_short, length);
  }
  return write_seed(folder / "header", test::as_it_comes, whole.data(), sizeof(ledger::Header)) &&
         good;
}

}  // namespace

int main(int argc, char** argv) {
  std::error_code error;
  if (argc == 2) std::filesystem::create_directories(argv[1], error);
  if (argc != 2 || error || !write_seeds(argv[1])) {
    std::cerr << "usage: ledger_seeds FOLDER (that can be written)\n";
    return 2;
  }
}
