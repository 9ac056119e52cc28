// What can be told about a program from its file: whether a preloaded library reaches it, and how
// it reaches CUDA. Nothing of the program is run; its libraries are listed by the dynamic linker.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cuwarden {

struct NeededLibrary {
  std::string name;
  std::string path;  // empty: not found
};

struct ProgramFile {
  std::string path;
  std::vector<std::string> interpreters;  // of a script, outermost first; empty: no script
  bool is_elf = false;
  bool is_64_bit_x86 = false;
  bool is_static = false;       // no dynamic linker: nothing can be preloaded
  bool drops_preloads = false;  // set-user-ID, set-group-ID or capabilities
  std::string run_path;         // RPATH or RUNPATH
  std::vector<NeededLibrary> libraries;
  std::vector<std::string> static_runtimes;  // files that carry a cudart of their own
};

// As a shell finds it. Null: there is no such command.
std::optional<std::string> find_program(const std::string& command);

// `path` as find_program gives it. For a script, `path` and what follows are its interpreter's.
ProgramFile inspect_program(const std::string& path);

}  // namespace cuwarden
