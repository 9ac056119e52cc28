// Facts about a program, from its file: they show if a library can be preloaded into the program,
// and how it reaches CUDA. The program is not run; the dynamic linker lists its libraries.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cuwarden {

struct NeededLibrary {
  std::string name;
  std::string path;  // empty if the library is not found
};

struct ProgramFile {
  std::string path;
  std::vector<std::string> interpreters;  // of a script, outermost first; empty if it is no script
  bool is_elf = false;
  bool is_64_bit_x86 = false;
  bool is_static = false;       // true if nothing can be preloaded, without a dynamic linker
  bool drops_preloads = false;  // true for a set-user-ID or set-group-ID file, or with capabilities
  std::string run_path;         // RPATH or RUNPATH
  std::vector<NeededLibrary> libraries;
  std::vector<std::string> static_runtimes;  // paths of files that a cudart is linked into
};

// Returns the path of a command, found as a shell finds it; null if there is no such command.
std::optional<std::string> find_program(const std::string& command);

// Returns the facts about a program. `path`: as find_program() returns it. For a script, the
// result's `path` and the fields behind `interpreters` are those of its interpreter.
ProgramFile inspect_program(const std::string& path);

}  // namespace cuwarden
