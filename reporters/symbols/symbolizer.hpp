// Finds functions, source files and lines for addresses in a file of code. libbacktrace reads the
// debug information, in which it finds inlined functions, too, and finds separate debug files by
// build id. For addresses without debug information, the ELF symbol table gives function names.
// libbacktrace keeps its memory until the process ends.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reporters/symbols/symbol_budget.hpp"

struct backtrace_state;

namespace cuwarden {

// A function at a code address, with its source location. Inlined functions have frames of their
// own.
struct SymbolisedFrame {
  std::string function;  // demangled name of the function; empty: unknown
  std::string file;      // source file of the function; empty: unknown
  int line = 0;          // line of the code in the source file; 0: unknown
  bool inlined = false;  // true if the function was inlined into the next frame of the list
};

// State of a file of code, compared with the file that ran. `readable`: it can be read, and is not
// known to be another one. `missing`: it cannot be read as an ELF file. `changed`: it is not the
// file that ran.
enum class FileState : std::uint8_t { readable, missing, changed };

// Returns a C++ function's name as people write it, for its mangled name. A name that is not
// mangled is returned unchanged. `name`: null gives an empty text.
std::string demangled(const char* name);

// Returns the state of the file at `path`, by its build id: `readable` if it is `build_id`, that of
// the file that ran. An empty `build_id` matches every ELF file.
FileState check_file(const char* path, std::span<const std::uint8_t> build_id) noexcept;

// The functions and source lines that symbolise() found for a list of addresses.
struct Symbolised {
  // For each address, in the order of the list, its frames: the innermost inlined function first,
  // the function that has the code last. A frame with empty fields stands for an unknown function.
  // symbolise() gives each address at least one frame. Naming::name() gives none if the file was
  // not read.
  std::vector<std::vector<SymbolisedFrame>> frames;
  // lines_are_missing: true if the budget of time and memory did not suffice for all lines.
  // names_are_missing: true if the budget of time did not suffice for all function names.
  bool lines_are_missing = false, names_are_missing = false;
};

// A file that libbacktrace has read, kept for later calls of symbolise(). The object must not be
// moved: libbacktrace keeps a pointer to `path`.
struct ReadFile {
  std::string path;  // path of the file of code; empty before the first call of symbolise()
  // State that libbacktrace made for the file, which is never freed; null before the first call of
  // symbolise().
  backtrace_state* state = nullptr;
  // True if the budget ended while the file was read. Lines of the file then stay unknown.
  bool was_cut = false;
};

// Returns functions and source lines for addresses in the ELF file at `path`. `sorted`: addresses
// as in the file's symbol table, ascending. `kept`: keeps the read file for further calls, all of
// which must give the same path. The budget limits time and memory. If the file cannot be read, all
// names are empty.
Symbolised symbolise(ReadFile& kept, const std::string& path, std::span<const std::uint64_t> sorted,
                     SymbolBudget&);
// Returns functions and source lines for addresses in the ELF file at `path`, which is read for
// this call only. `sorted`: addresses as in the file's symbol table, ascending. The budget limits
// time and memory.
Symbolised symbolise(const char* path, std::span<const std::uint64_t> sorted, SymbolBudget&);

}  // namespace cuwarden
