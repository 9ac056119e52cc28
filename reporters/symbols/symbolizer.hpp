// Turns addresses of one file into functions, files and lines: libbacktrace first (inlined
// functions included, separate debug files found by build id), then the ELF symbols.
// libbacktrace keeps what it has read until the process ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reporters/symbols/symbol_budget.hpp"

struct backtrace_state;

namespace cuwarden {

struct SymbolisedFrame {
  std::string function;  // demangled; empty: unknown
  std::string file;      // empty: unknown
  int line = 0;          // 0: unknown
  bool inlined = false;  // into the next frame
};

enum class FileState : std::uint8_t { readable, missing, changed };

// A name as people write it; what is no mangled name stays as it is. Null: none.
std::string demangled(const char* name);

// Compares the file's build id with the one that was recorded; an empty one matches every file.
FileState check_file(const char* path, std::span<const std::uint8_t> build_id) noexcept;

struct Symbolised {
  // For each address: at least one frame, innermost first.
  std::vector<std::vector<SymbolisedFrame>> frames;
  // The budget did not suffice for all of them.
  bool lines_are_missing = false, names_are_missing = false;
};

// A file that was read, kept so that it can be asked for other addresses. It must not move:
// libbacktrace keeps a pointer to its path.
struct ReadFile {
  std::string path;  // empty before the first call
  backtrace_state* state = nullptr;
  bool was_cut = false;  // the budget ended while the file was read: its lines stay unknown
};

// `sorted`: addresses in the file's own terms. All calls with one `kept` are about one path.
Symbolised symbolise(ReadFile& kept, const std::string& path, std::span<const std::uint64_t> sorted,
                     SymbolBudget&);
Symbolised symbolise(const char* path, std::span<const std::uint64_t> sorted, SymbolBudget&);

}  // namespace cuwarden
