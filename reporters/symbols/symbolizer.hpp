// Finds functions, source files and lines for addresses in a file of code. libbacktrace reads the
// debug information, in which it finds inlined functions, too. It finds separate debug files by
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

// A function at a code address, with its source location. A function that was inlined there has a
// frame of its own.
struct SymbolisedFrame {
  std::string function;  // demangled name of the function; empty: unknown
  std::string file;      // path of the function's source file; empty: unknown
  int line = 0;          // line of the code in the source file; 0: unknown
  bool inlined = false;  // true if the function was inlined into the next frame of the list
};

// State of a file of code, compared with the file that ran. `readable`: the file can be read, and
// is not known to be another one. `missing`: it cannot be read as an ELF file. `changed`: it is
// another file than the one that ran.
enum class FileState : std::uint8_t { readable, missing, changed };

// Returns a C++ function's name as people write it. `name`: the function's mangled name. A name
// that is not mangled is returned unchanged; null gives an empty text.
std::string demangled(const char* name);

// Returns the state of the file at `path`, by its build id. `build_id`: bytes of the build id of
// the file that ran; if it is empty, every ELF file is `readable`.
FileState check_file(const char* path, std::span<const std::uint8_t> build_id) noexcept;

// The functions and source lines that symbolise() found for a list of addresses.
struct Symbolised {
  // For each address, in the order of the list, its frames: the innermost inlined function first,
  // the function that contains them last. A frame with empty fields means an unknown function.
  // symbolise() gives each address at least one frame. Naming::name() gives none if the file was
  // not read.
  std::vector<std::vector<SymbolisedFrame>> frames;
  // lines_are_missing: true if time or memory did not suffice for all source lines.
  // names_are_missing: true if the time did not suffice for all function names.
  bool lines_are_missing = false, names_are_missing = false;
};

// A file that libbacktrace has read, kept for later calls of symbolise(). The object must not be
// moved, since libbacktrace keeps a pointer to `path`.
struct ReadFile {
  std::string path;  // path of the file of code; empty before the first call of symbolise()
  // State that libbacktrace made for the file, and that is never freed; null before the first call
  // of symbolise().
  backtrace_state* state = nullptr;
  // True if libbacktrace stopped before it had read all debug information of the file: a call's
  // budget was spent, or the system had no memory. Some source lines then stay unknown.
  bool was_cut = false;
};

// Returns functions and source lines for addresses in the ELF file at `path`. `sorted`: addresses
// as in the file's symbol table, ascending. `kept`: keeps the file's debug information for further
// calls, all of which must give the same path. The budget limits time and memory. If the file
// cannot be read, all names are empty.
Symbolised symbolise(ReadFile& kept, const std::string& path, std::span<const std::uint64_t> sorted,
                     SymbolBudget&);
// Returns functions and source lines for addresses in the ELF file at `path`, whose debug
// information is read for this call only. `sorted`: addresses as in the file's symbol table,
// ascending. The budget limits time and memory.
Symbolised symbolise(const char* path, std::span<const std::uint64_t> sorted, SymbolBudget&);

}  // namespace cuwarden
