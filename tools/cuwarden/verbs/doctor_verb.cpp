// `cuwarden doctor`: shows how the shim works on this machine, and how a program reaches CUDA.
#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reporters/owners/cuda_frames.hpp"
#include "reporters/tables/process_facts.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "runtime_hooks/core/files/open_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/program/installation.hpp"
#include "tools/cuwarden/program/program_file.hpp"
#include "tools/cuwarden/program/sanitizers.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

struct ChildAnswer {
  bool good = false;
  std::string text;
};

// Sends a line of the answer. Line feeds inside of it, from library names and from the dynamic
// linker's errors, are replaced.
void answer_line(int answer, const std::string& text) {
  const std::string whole = printable(text) + "\n";
  [[maybe_unused]] const ssize_t count = write(answer, whole.data(), whole.size());
}

// Runs `ask(descriptor)` in a child, so that a driver that hangs, prints or crashes does no harm to
// the command. The answer is the text that `ask` wrote, and is good if `ask` returned true.
template <class Ask>
ChildAnswer ask_child(const Ask& ask) {
  ChildAnswer answer;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return answer;
  const pid_t child = fork();
  if (child == 0) {
    const Descriptor nothing = open_to_append("/dev/null", false);
    dup2(nothing.number(), STDOUT_FILENO);
    dup2(nothing.number(), STDERR_FILENO);
    alarm(30);
    _exit(ask(ends[1]) ? 0 : 1);
  }
  close(ends[1]);
  char piece[1024];
  for (ssize_t count = 0; (count = read(ends[0], piece, sizeof piece)) > 0;) {
    answer.text.append(piece, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  if (child > 0 && waitpid(child, &status, 0) == child) {
    answer.good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status)) {
      answer.text += "the check was ended by signal " + std::to_string(WTERMSIG(status)) + "\n";
    }
  }
  return answer;
}

std::string line(const std::string& topic, const std::string& fact) {
  std::string text = topic;
  text.resize(std::max<std::size_t>(text.size() + 1, 10), ' ');
  return text + printable(fact) + "\n";
}

// Adds each line of `text` to `out`, under one topic.
void add_lines(const std::string& topic, const std::string& text, std::string& out) {
  std::size_t start = 0;
  bool first = true;
  while (start < text.size()) {
    const auto end = std::min(text.find('\n', start), text.size());
    out += line(first ? topic : "", text.substr(start, end - start));
    first = false;
    start = end + 1;
  }
}

bool check_shim(std::string& out) {
  const auto shim = find_shim();
  if (!shim) {
    out += line("shim", "libcuwarden.so is neither beside this command nor in ../lib: reinstall");
    return false;
  }
  const ChildAnswer loaded = ask_child([&](int answer) {
    if (dlopen(shim->c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return true;
    answer_line(answer, std::string(dlerror()));
    return false;
  });
  if (loaded.good) {
    out += line("shim", *shim + " loads");
    return true;
  }
  add_lines("shim", *shim + " does not load:\n" + loaded.text, out);
  return false;
}

// Asks the driver through its C interface and writes its answers to `answer`. Runs in the child.
bool ask_driver(int answer) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    answer_line(answer, std::string("no CUDA driver: ") + dlerror());
    return false;
  }
  link_map* map = nullptr;
  if (dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0) {
    answer_line(answer, "libcuda.so.1 is " + std::string(map->l_name));
  }
  const auto find = [&]<class Function>(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(driver, name));
    return function != nullptr;
  };
  int (*initialise)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count_devices)(int*) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*get_name)(char*, int, int) = nullptr;
  int (*get_memory)(std::size_t*, int) = nullptr;
  if (!find("cuInit", initialise) || !find("cuDriverGetVersion", version) ||
      !find("cuDeviceGetCount", count_devices) || !find("cuDeviceGet", get_device) ||
      !find("cuDeviceGetName", get_name) || !find("cuDeviceTotalMem_v2", get_memory)) {
    answer_line(answer, "libcuda.so.1 lacks functions that every driver has: is it a stub?");
    return false;
  }
  int number = 0;
  if (version(&number) == 0) answer_line(answer, "supports CUDA " + version_text(number));
  if (const int error = initialise(0)) {
    answer_line(answer, "cuInit fails with error " + std::to_string(error) +
                            (error == 100 ? " (no device)" : ""));
    return false;
  }
  int devices = 0;
  if (count_devices(&devices) != 0 || devices == 0) {
    answer_line(answer, "no device is visible");
    return false;
  }
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    int device = 0;
    char name[256] = {};
    std::size_t bytes = 0;
    if (get_device(&device, ordinal) != 0 || get_name(name, sizeof name - 1, device) != 0 ||
        get_memory(&bytes, device) != 0) {
      answer_line(answer, "GPU " + std::to_string(ordinal) + ": its name and size cannot be read");
      continue;
    }
    answer_line(answer, "GPU " + std::to_string(ordinal) + ": " + name + ", " + human_bytes(bytes));
  }
  return true;
}

bool check_driver(std::string& out) {
  const ChildAnswer driver = ask_child([](int answer) { return ask_driver(answer); });
  add_lines("driver", driver.text, out);
  const std::string package = driver_package_version();
  out += line("", package.empty() ? "no NVIDIA kernel module is loaded (or /sys is hidden)"
                                  : "kernel module " + package);
  if (!driver.good)
    out += line("", "`cuwarden run --simulate 16GiB -- PROGRAM` tries cuwarden on a simulated GPU");
  return driver.good;
}

void add_sanitizers(const ProgramFile& program, std::string& out) {
  for (const NeededLibrary& library : program.libraries) {
    const std::string_view sanitizer = sanitizer_of(library.name);
    if (sanitizer.empty()) continue;
    out += line("", "is built with " + std::string(sanitizer) + ": needs " + library.name + " → " +
                        (library.path.empty() ? "not found" : library.path));
    if (!insists_on_being_first(library.name)) continue;
    out +=
        line("",
             "that runtime ends programs whose LD_PRELOAD begins with another library; `cuwarden "
             "run` turns the check off");
    out += line("",
                "without `run`, set ASAN_OPTIONS=verify_asan_link_order=0, or preload the runtime "
                "first: LD_PRELOAD=" +
                    (library.path.empty() ? library.name : library.path) + ":" +
                    find_shim().value_or("libcuwarden.so"));
  }
}

bool check_program(const std::vector<std::string>& command, std::string& out) {
  const auto path = find_program(command.front());
  if (!path) return false;
  const ProgramFile program = inspect_program(*path);
  out += line("program", *path);
  for (const std::string& interpreter : program.interpreters) {
    out += line("", "is a script run by " + interpreter);
  }
  if (!program.is_elf) {
    out += line("", program.path + " is neither a program nor a script that begins with #!");
    return false;
  }
  if (!program.is_64_bit_x86) {
    out += line("", "is not a 64-bit x86 program: not covered");
    return false;
  }
  if (program.is_static) {
    out += line("", "is linked statically: nothing can be preloaded, not covered");
    return false;
  }
  bool covered = true;
  if (program.drops_preloads) {
    out += line("",
                "runs with other privileges (set-user-ID or capabilities): the dynamic "
                "linker ignores LD_PRELOAD, not covered");
    covered = false;
  }
  bool reaches_cuda = false;
  for (const std::string& carrier : program.static_runtimes) {
    out += line("", carrier + " carries a static CUDA runtime: covered through the driver");
    reaches_cuda = true;
  }
  for (const NeededLibrary& library : program.libraries) {
    if (!is_cuda_library(library.name)) continue;
    out += line(
        "", "needs " + library.name + " → " + (library.path.empty() ? "not found" : library.path));
    reaches_cuda = true;
  }
  for (const NeededLibrary& library : program.libraries) {
    if (library.path.empty() && !is_cuda_library(library.name)) {
      out += line("", "needs " + library.name + ", which is not found");
    }
  }
  add_sanitizers(program, out);
  if (!reaches_cuda) {
    out += line("", "links no CUDA library: it may load one while it runs, which is covered");
  }
  if (!program.run_path.empty()) {
    out += line("", "searches " + program.run_path + " (RPATH or RUNPATH) for its libraries");
  }
  return covered;
}

}  // namespace

int doctor_verb(const std::vector<std::string>& command) {
  if (!command.empty() && !find_program(command.front())) {
    print_error(name_in_a_line(command.front()) + ": no such command");
    return 2;
  }
  std::string out = line("cuwarden", CUWARDEN_VERSION ", built with the headers of CUDA " +
                                         version_text(CUWARDEN_CUDA_HEADERS));
  bool good = check_shim(out);
  good = check_driver(out) && good;
  if (!command.empty()) good = check_program(command, out) && good;
  print(STDOUT_FILENO, out);
  return good ? 0 : 1;
}

}  // namespace cuwarden
