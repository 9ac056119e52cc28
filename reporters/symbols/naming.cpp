#include "reporters/symbols/naming.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "reporters/files/file_status.hpp"
#include "reporters/owners/system_libraries.hpp"
#include "runtime_hooks/core/files/each_line.hpp"

namespace cuwarden {
namespace {

std::vector<std::uint8_t> from_hexadecimal(const std::string& text) {
  const auto digit = [](char letter) { return letter <= '9' ? letter - '0' : letter - 'a' + 10; };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  return bytes;
}

// "A", "A and B", "A, B and 3 other files"
std::string enumeration(const std::vector<std::string>& paths) {
  constexpr std::size_t most = 3;
  const std::size_t named = paths.size() > most ? most - 1 : paths.size();
  std::string text = paths.at(0);
  for (std::size_t i = 1; i < named; ++i) {
    text += (i + 1 == paths.size() ? " and " : ", ") + paths[i];
  }
  if (named < paths.size()) text += " and " + std::to_string(paths.size() - named) + " other files";
  return text;
}

bool is_unchanged_since(const std::string& path, std::int64_t time_ns) {
  struct stat status {};
  if (status_at(AT_FDCWD, path.c_str(), status, 0) != 0) return false;
  const auto ns = [](const timespec& time) {
    return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  };
  return ns(status.st_ctim) < time_ns && ns(status.st_mtim) < time_ns;
}

// True if this process has mapped a file that had this path and was removed, or replaced by
// another one. The kernel marks such a file's path. Without an answer, returns false.
bool is_replaced_here(const std::string& path) {
  bool replaced = false, present = false;
  each_line_of("/proc/self/maps", [&](const std::string& line) {
    replaced = replaced || line.ends_with(" " + path + " (deleted)");
    present = present || line.ends_with(" " + path);
  });
  return replaced && !present;
}

constexpr auto advice_on_symbols =
    " (`cuwarden report` names them, where these files lie; CUWARDEN_SYMBOL_TIME gives the report "
    "at exit more time)";

}  // namespace

void Naming::trust_only_unchanged_since(std::optional<std::int64_t> time_ns) {
  trusts_paths_ = false;
  unchanged_since_ns_ = time_ns;
}

std::string Naming::find_file(const std::string& path, const std::string& build_id,
                              FileState& state) const {
  if (find_ && !build_id.empty()) {
    std::string found = find_(build_id);
    state = FileState::readable;
    if (!found.empty()) return found;
  }
  // A module's name without a folder comes from the dynamic linker or from a redacted report.
  if (!uses_paths_ || (!trusts_paths_ && !path.starts_with('/'))) {
    state = FileState::missing;
    return {};
  }
  state = check_file(path.c_str(), from_hexadecimal(build_id));
  if (state == FileState::readable && build_id.empty()) {
    const bool is_same =
        trusts_paths_ ? !is_replaced_here(path)
                      : unchanged_since_ns_ && is_unchanged_since(path, *unchanged_since_ns_);
    if (!is_same) state = FileState::changed;
  }
  return path;
}

Symbolised Naming::name(const std::string& path, const std::string& build_id,
                        std::span<const std::uint64_t> sorted, Missed missed) {
  if (is_system_library(path)) missed = Missed::nothing;
  FileState state{};
  const std::string file = find_file(path, build_id, state);
  if (state == FileState::readable) {
    Symbolised named = symbolise(files_[file], file, sorted, budget_);
    if (missed != Missed::nothing && named.names_are_missing)
      without_names_.push_back(path);
    else if (missed != Missed::nothing && named.lines_are_missing)
      without_lines_.push_back(path);
    return named;
  }
  if (missed == Missed::functions && state == FileState::changed) {
    reasons_.push_back(
        path + (build_id.empty()
                    ? " may not be the file that ran (it has no build id): its functions are not "
                      "named"
                    : " is not the file that ran (its build id differs): its functions are not "
                      "named"));
  } else if (missed == Missed::functions && (path.starts_with('/') || !trusts_paths_)) {
    reasons_.push_back(path + " could not be read: its functions are not named");
  }
  return {.frames = std::vector<std::vector<SymbolisedFrame>>(sorted.size())};
}

std::vector<std::string> Naming::take_reasons() {
  if (!without_lines_.empty()) {
    reasons_.push_back("reading debug information took too long or too much memory: functions of " +
                       enumeration(without_lines_) + " may lack files and lines" +
                       advice_on_symbols);
  }
  if (!without_names_.empty()) {
    reasons_.push_back("reading symbols took too long: functions of " +
                       enumeration(without_names_) + " may lack names" + advice_on_symbols);
  }
  without_lines_.clear();
  without_names_.clear();
  return std::exchange(reasons_, {});
}

}  // namespace cuwarden
