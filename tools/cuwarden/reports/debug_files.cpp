#include "tools/cuwarden/reports/debug_files.hpp"

#include <filesystem>
#include <system_error>

#include "reporters/symbols/elf_symbols.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

namespace fs = std::filesystem;

// The search ends after this many entries: a larger folder is a whole file system, given by
// mistake.
constexpr std::size_t most_entries = 1'000'000;

}  // namespace

void DebugFiles::look_at(const std::string& path) {
  const auto file = ElfFile::open(path.c_str());
  if (!file) return;
  const std::string build_id = hexadecimal(file->build_id());
  if (build_id.empty()) return;
  const bool has_lines = file->has_debug_information();
  Found& known = found_[build_id];
  if (known.path.empty() || (has_lines && !known.has_lines)) known = {path, has_lines};
}

void DebugFiles::look_at_all() {
  if (has_looked_at_all_) return;
  has_looked_at_all_ = true;
  std::size_t entries = 0;
  for (const std::string& folder : folders_) {
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                           error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      if (++entries > most_entries) return;
      std::error_code ignored;
      if (entry->is_regular_file(ignored)) look_at(entry->path());
    }
  }
}

std::string DebugFiles::find(const std::string& build_id) {
  if (build_id.size() < 4) return {};
  const std::string first = build_id.substr(0, 2), rest = build_id.substr(2);
  const auto has_lines = [&] {
    const auto known = found_.find(build_id);
    return known != found_.end() && known->second.has_lines;
  };
  for (const std::string& folder : folders_) {
    for (const std::string& name :
         {".build-id/" + first + "/" + rest + ".debug", first + "/" + rest + ".debug",
          build_id + "/debuginfo", ".build-id/" + first + "/" + rest, first + "/" + rest}) {
      if (!has_lines()) look_at(folder + "/" + name);
    }
  }
  if (!has_lines()) look_at_all();
  const auto known = found_.find(build_id);
  return known == found_.end() ? std::string() : known->second.path;
}

}  // namespace cuwarden
