#include "reporters/owners/known_libraries.hpp"

#include <algorithm>
#include <array>

#include "reporters/owners/cuda_frames.hpp"
#include "reporters/owners/file_pattern.hpp"
#include "reporters/owners/short_names.hpp"
#include "reporters/owners/system_libraries.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/setting_values.hpp"

namespace cuwarden {
namespace {

struct KnownLibrary {
  std::string_view name, pattern;
};

constexpr KnownLibrary known_libraries[] = {
#define KNOWN_LIBRARY(name, pattern) {name, pattern},
#include "reporters/owners/known_libraries.def"
#undef KNOWN_LIBRARY
};

bool is_file_of(const KnownLibrary& library, std::string_view path) noexcept {
  const std::string_view pattern = library.pattern;
  // A user's file may have a name that begins like a library's: "xla_train.py".
  if (pattern.ends_with('*') && !pattern.starts_with('<') &&
      file_name(path).find(".so") == path.npos)
    return false;
  return matches_file(path, pattern);
}

// True if the file is the interpreter's program ("python3.12"), or a part of its standard library.
bool is_interpreter(std::string_view path) noexcept {
  if (path.starts_with("<frozen ")) return true;
  constexpr std::string_view program = "python";
  const std::string_view file = file_name(path);
  if (file.starts_with(program) &&
      file.find_first_not_of("0123456789.td", program.size()) == file.npos)
    return true;
  // "/usr/lib/python3.11/ctypes/__init__.py", but nothing in site-packages or dist-packages.
  for (const std::string_view folder : {"/lib/python3", "/lib64/python3"}) {
    const std::size_t at = path.find(folder);
    if (at == path.npos) continue;
    const std::size_t end = path.find_first_not_of("0123456789.t", at + folder.size());
    if (end != path.npos && path[end] == '/' && path.find("-packages/", end) == path.npos)
      return true;
  }
  return false;
}

// Returns the library to which a function belongs by its name, for functions whose source file is
// unknown; empty: not known. Headers of these libraries put functions into the program's own files.
std::string_view library_of_function(std::string_view function) {
  struct Row {
    std::string_view space, library;
  };
  constexpr std::array rows = {
      Row{"std::", system_libraries}, Row{"__gnu_cxx::", system_libraries},
      Row{"pybind11::", "pybind11"},  Row{"nanobind::", "nanobind"},
      Row{"at::", "PyTorch"},         Row{"c10::", "PyTorch"},
      Row{"torch::", "PyTorch"},      Row{"thrust::", cuda_library},
      Row{"cub::", cuda_library},     Row{"rmm::", "RMM"},
  };
  const std::string name = name_alone(function);
  const auto* const found =
      std::ranges::find_if(rows, [&](const Row& row) { return name.starts_with(row.space); });
  return found == rows.end() ? std::string_view{} : found->library;
}

}  // namespace

KnownLibraries::KnownLibraries(std::string_view further) {
  if (!are_file_patterns(further)) return;
  while (!further.empty()) {
    const std::size_t end = std::min(further.find(','), further.size());
    further_.emplace_back(further.substr(0, end));
    further.remove_prefix(std::min(end + 1, further.size()));
  }
}

std::string_view KnownLibraries::library_of_file(std::string_view path) {
  if (path.empty()) return {};
  const auto [known, is_new] = known_.try_emplace(path);
  if (!is_new) return known->second;
  std::string_view& name = known->second;
  const auto further = std::ranges::find_if(
      further_, [&](const std::string& pattern) { return matches_file(path, pattern); });
  if (further != further_.end()) return name = *further;
  for (const KnownLibrary& library : known_libraries)
    if (is_file_of(library, path)) return name = library.name;
  if (is_interpreter(path)) return name = interpreter_library;
  return name = is_system_library(path) ? system_libraries : std::string_view{};
}

std::string_view KnownLibraries::library_of(const NamedFrame& frame) {
  if (frame.is_python) return library_of_file(frame.file);
  if (is_cuda_frame(frame.path, frame.function, frame.file)) return cuda_library;
  // A library's own file, or a function that a library's header has put into the program's file.
  for (const std::string_view path : {frame.path, frame.file})
    if (const std::string_view name = library_of_file(path); !name.empty()) return name;
  return frame.file.empty() ? library_of_function(frame.function) : std::string_view{};
}

std::string library_name(std::string_view path) {
  KnownLibraries libraries;
  const std::string_view known = libraries.library_of({.module = 1, .path = path});
  return std::string(known.empty() ? file_name(path) : known);
}

}  // namespace cuwarden
