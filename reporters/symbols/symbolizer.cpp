#include "reporters/symbols/symbolizer.hpp"

#include <backtrace.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "reporters/symbols/elf_symbols.hpp"

namespace cuwarden {

std::string demangled(const char* name) {
  if (name == nullptr) return {};
  if (name[0] != '_') return name;
  int status = 0;
  // The buffer comes from malloc as seen by the C++ runtime, which is the one that is seen here.
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (text == nullptr) return name;
  std::string result(text);
  std::free(text);
  return result;
}

namespace {

// Files without debug information are the common case, not an error to speak of.
void ignore_error(void*, const char*, int) {}

// Called by C code: nothing may be thrown through it.
int add_frame(void* data, std::uintptr_t, const char* file, int line, const char* function) {
  auto& frames = *static_cast<std::vector<SymbolisedFrame>*>(data);
  try {
    if (file != nullptr || function != nullptr) {
      frames.push_back({demangled(function), file == nullptr ? "" : file, line, false});
    }
  } catch (...) {
    return 1;
  }
  return 0;
}

}  // namespace

FileState check_file(const char* path, std::span<const std::uint8_t> build_id) noexcept try {
  const auto file = ElfFile::open(path);
  if (!file) return FileState::missing;
  if (build_id.empty()) return FileState::readable;
  return std::ranges::equal(file->build_id(), build_id) ? FileState::readable : FileState::changed;
} catch (...) {
  return FileState::missing;
}

Symbolised symbolise(const char* path, std::span<const std::uint64_t> sorted,
                     SymbolBudget& budget) {
  ReadFile file;
  return symbolise(file, path, sorted, budget);
}

Symbolised symbolise(ReadFile& kept, const std::string& path, std::span<const std::uint64_t> sorted,
                     SymbolBudget& budget) {
  Symbolised result;
  auto& found = result.frames;
  found.resize(sorted.size());
  // Given a file that it cannot open, libbacktrace would go on with this process's own program.
  const auto file = ElfFile::open(path.c_str());
  std::vector<std::uint64_t> nameless;
  {
    const BoundReading reading(budget);
    if (file && kept.state == nullptr) {
      kept.path = path;
      kept.state = backtrace_create_state(kept.path.c_str(), 0, ignore_error, nullptr);
    }
    backtrace_state* const state = file ? kept.state : nullptr;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      auto& frames = found[i];
      if (state != nullptr && !result.lines_are_missing) {
        backtrace_pcinfo(state, static_cast<std::uintptr_t>(sorted[i]), add_frame, ignore_error,
                         &frames);
        result.lines_are_missing = !budget.has_time_for_lines();
      }
      if (frames.empty()) frames.emplace_back();
      for (std::size_t f = 0; f + 1 < frames.size(); ++f) frames[f].inlined = true;
      if (frames.back().function.empty()) nameless.push_back(sorted[i]);
    }
    kept.was_cut = kept.was_cut || reading.was_cut();
    result.lines_are_missing =
        file && (kept.was_cut || (result.lines_are_missing && !nameless.empty()));
  }
  if (nameless.empty() || !file) return result;
  const auto names = file->functions_at(nameless, budget);
  result.names_are_missing = names.size() < nameless.size();
  for (std::size_t i = 0, n = 0; i < sorted.size() && n < names.size(); ++i) {
    if (!found[i].back().function.empty()) continue;
    found[i].back().function = demangled(names[n].empty() ? nullptr : names[n].c_str());
    ++n;
  }
  return result;
}

}  // namespace cuwarden
