#include "tools/cuwarden/program/program_file.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "reporters/files/file_status.hpp"
#include "reporters/owners/cuda_frames.hpp"
#include "reporters/symbols/elf_symbols.hpp"
#include "runtime_hooks/core/files/small_file.hpp"

extern char** environ;

namespace cuwarden {
namespace {

constexpr int most_interpreters = 4;  // the kernel's own limit

// Returns a text by which a cudart linked into a file is recognised: every version of cudart has it
// in its table of errors, and no other library needs it. It is put together here, so that this
// command does not look like a program with a cudart of its own.
std::string runtime_mark() {
  return std::string("CUDA driver version is insufficient") + " for CUDA runtime version";
}

bool is_runnable(const std::string& path) {
  struct stat status {};
  return status_at(AT_FDCWD, path.c_str(), status, 0) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// Returns the words of a script's first line; empty if the file is no script.
std::vector<std::string> script_line(const std::string& path) {
  char line[256];
  const std::string_view start = read_small_file(path.c_str(), line);
  if (!start.starts_with("#!")) return {};
  const std::string text(start.substr(2));
  std::istringstream words(text.substr(0, text.find('\n')));
  std::vector<std::string> result;
  for (std::string word; words >> word;) result.push_back(word);
  return result;
}

// Returns the libraries that the program would load, as `LINKER --list PATH` lists them.
std::vector<NeededLibrary> list_libraries(const std::string& linker, const std::string& path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  std::string words[] = {linker, "--list", path};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = -1;
  const int error =
      posix_spawn(&child, linker.c_str(), &actions, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t count = 0; error == 0 && (count = read(ends[0], piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  if (error != 0) return {};
  waitpid(child, nullptr, 0);

  std::vector<NeededLibrary> libraries;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // A line is "\tlibm.so.6 => /lib/libm.so.6 (0x…)", "\tlibx.so => not found" or
    // "\t/lib64/ld.so (0x…)".
    line.erase(0, line.find_first_not_of(" \t"));
    const auto arrow = line.find(" => ");
    if (arrow == line.npos) continue;
    NeededLibrary library{line.substr(0, arrow), line.substr(arrow + 4)};
    library.path.resize(std::min(library.path.size(), library.path.rfind(" (0x")));
    if (library.path == "not found") library.path.clear();
    libraries.push_back(std::move(library));
  }
  return libraries;
}

bool carries_runtime(const std::string& path) {
  if (is_cuda_library(path)) return false;
  const auto file = ElfFile::open(path.c_str());
  return file && file->constants_contain(runtime_mark());
}

std::string run_path_of(const ElfFile& file) {
  const auto file_offset = [&](std::uint64_t address) -> std::optional<std::uint64_t> {
    for (const Elf64_Phdr& segment : file.segments()) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz) {
        return segment.p_offset + (address - segment.p_vaddr);
      }
    }
    return std::nullopt;
  };
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_DYNAMIC) continue;
    std::vector<Elf64_Dyn> entries(std::min<std::uint64_t>(segment.p_filesz, 64 * 1024) /
                                   sizeof(Elf64_Dyn));
    entries.resize(file.read(segment.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn)) /
                   sizeof(Elf64_Dyn));
    std::optional<std::uint64_t> texts, path;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_STRTAB) texts = file_offset(entry.d_un.d_ptr);
      if (entry.d_tag == DT_RUNPATH || (entry.d_tag == DT_RPATH && !path)) path = entry.d_un.d_val;
    }
    if (texts && path) return file.text(*texts + *path);
  }
  return {};
}

}  // namespace

std::optional<std::string> find_program(const std::string& command) {
  if (command.find('/') != command.npos) {
    struct stat status {};
    if (status_at(AT_FDCWD, command.c_str(), status, 0) != 0) return std::nullopt;
    return command;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + command;
    if (is_runnable(candidate)) return candidate;
  }
  return std::nullopt;
}

ProgramFile inspect_program(const std::string& path) {
  ProgramFile program;
  program.path = path;
  for (int depth = 0; depth < most_interpreters; ++depth) {
    const auto words = script_line(program.path);
    if (words.empty()) break;
    std::string interpreter = words[0];
    if (interpreter.ends_with("/env")) {
      const auto name = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
        return !word.starts_with('-') && word.find('=') == word.npos;
      });
      if (name != words.end()) interpreter = find_program(*name).value_or(*name);
    }
    program.interpreters.push_back(interpreter);
    program.path = interpreter;
  }

  struct stat status {};
  if (status_at(AT_FDCWD, program.path.c_str(), status, 0) == 0) {
    const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
    const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
    const bool capabilities =
        geteuid() != 0 && getxattr(program.path.c_str(), "security.capability", nullptr, 0) > 0;
    program.drops_preloads = other_user || other_group || capabilities;
  }

  const auto file = ElfFile::open(program.path.c_str());
  if (!file) {
    char magic[SELFMAG];
    program.is_elf = read_small_file(program.path.c_str(), magic) == ELFMAG;
    return program;
  }
  program.is_elf = true;
  program.is_64_bit_x86 = file->header().e_machine == EM_X86_64;
  std::string linker;
  for (const Elf64_Phdr& segment : file->segments()) {
    if (segment.p_type == PT_INTERP) linker = file->text(segment.p_offset);
  }
  program.is_static = linker.empty();
  program.run_path = run_path_of(*file);
  if (!linker.empty()) program.libraries = list_libraries(linker, program.path);
  if (carries_runtime(program.path)) program.static_runtimes.push_back(program.path);
  for (const NeededLibrary& library : program.libraries) {
    if (!library.path.empty() && carries_runtime(library.path)) {
      program.static_runtimes.push_back(library.path);
    }
  }
  return program;
}

}  // namespace cuwarden
