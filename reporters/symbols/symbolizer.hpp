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

// The source location of a code address, or of a function that was inlined there.
struct SymbolisedFrame {
  std::string function;  // demangled; empty: unknown
  std::string file;      // empty: unknown
  int line = 0;          // 0: unknown
  bool inlined = false;  // true if the code was inlined into the next frame of the list
};

enum class FileState : std::uint8_t { readable, missing, changed };

// Returns the name as people write it. A name that is not mangled stays as it is. `name`: null
// gives an empty text.
std::string demangled(const char* name);

// Compares the file's build id with the recorded one. An empty `build_id` matches every file.
FileState check_file(const char* path, std::span<const std::uint8_t> build_id) noexcept;

// Names for a list of addresses.
struct Symbolised {
  // For each address at least one frame; inlined functions come first.
  std::vector<std::vector<SymbolisedFrame>> frames;
  // True if the budget did not suffice for all lines, or for all function names.
  bool lines_are_missing = false, names_are_missing = false;
};

// A file that libbacktrace has read, kept for later addresses. The object must not be moved:
// libbacktrace keeps a pointer to `path`.
struct ReadFile {
  std::string path;  // empty before the first call
  backtrace_state* state = nullptr;
  bool was_cut = false;  // true if the budget ended while the file was read; its lines stay unknown
};

// Returns names for addresses of a file. `sorted`: addresses as in the file's symbol table,
// ascending. All calls with the same `kept` must give the same path.
Symbolised symbolise(ReadFile& kept, const std::string& path, std::span<const std::uint64_t> sorted,
                     SymbolBudget&);
Symbolised symbolise(const char* path, std::span<const std::uint64_t> sorted, SymbolBudget&);

}  // namespace cuwarden
