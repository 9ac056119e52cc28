// Reads facts about a program from its file. They show if a library can be preloaded into the
// program, and how the program reaches CUDA. The program itself is not run.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cuwarden {

// A library that a program would load at its start, as the dynamic linker lists it (--list).
struct NeededLibrary {
  std::string name;  // file name by which the program asks for the library, such as libm.so.6
  std::string path;  // path of the file that would be loaded; empty if none is found
};

// Facts about a program's file. If the program is a script (#!), all members but `interpreters`
// concern the script's last interpreter.
struct ProgramFile {
  // Path of the program's executable file; for a script, that of its last interpreter.
  std::string path;
  // Interpreters of a script, four at most; empty if the program is no script. They begin with the
  // one in the script's first line. If an interpreter is a script, too, its own interpreter
  // follows. In place of `env NAME`, the list has the program NAME.
  std::vector<std::string> interpreters;
  bool is_elf = false;         // true if the file at `path` is an ELF file
  bool is_64_bit_x86 = false;  // true if the file at `path` is an ELF file for x86-64
  // True if the program is linked without a dynamic linker: nothing can be preloaded into it.
  bool is_static = false;
  // True if the dynamic linker ignores LD_PRELOAD, because the file gives other rights: those of
  // another user or group (set-user-ID, set-group-ID), or capabilities.
  bool drops_preloads = false;
  // RUNPATH of the file at `path`, or its RPATH if it has no RUNPATH; empty: neither.
  std::string run_path;
  std::vector<NeededLibrary> libraries;  // all libraries that are loaded at the program's start
  // Paths of the program and libraries into which a CUDA runtime (cudart) is linked statically;
  // CUDA's own libraries are left out.
  std::vector<std::string> static_runtimes;
};

// Returns the path of the file that a command means. A command with a slash is returned as it is,
// if there is such a file. For others, returns the first regular, executable file of the name in
// the folders of PATH. Null if there is none.
std::optional<std::string> find_program(const std::string& command);

// Returns the facts about the program whose file is at `path`. Starts the dynamic linker to list
// the libraries; the program itself does not run. If the file cannot be read, or is no ELF file
// that this command can read, the facts about its contents are false or empty.
ProgramFile inspect_program(const std::string& path);

}  // namespace cuwarden
