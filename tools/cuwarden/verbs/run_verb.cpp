// `cuwarden run`: runs a program under the shim and shows the reports of its processes.
//
// `run` makes a list file, whose path the processes find in CUWARDEN_REPORT_LIST. Each process
// appends two paths to it, each followed by a null byte: the path of its ledger when the ledger is
// made, and the path of its report when the report is written. If a ledger is left when the program
// has ended, its process could not write the report, and `run` makes it.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>

#include "reporters/comparison/unmatched_suppressions.hpp"
#include "reporters/owners/cuda_frames.hpp"
#include "reporters/reports/report_policy.hpp"
#include "reporters/words/error_text.hpp"
#include "reporters/words/fitted.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/signal_name.hpp"
#include "tools/cuwarden/ledgers/ledger_search.hpp"
#include "tools/cuwarden/ledgers/recovery.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/progress.hpp"
#include "tools/cuwarden/program/child_process.hpp"
#include "tools/cuwarden/program/installation.hpp"
#include "tools/cuwarden/program/program_environment.hpp"
#include "tools/cuwarden/program/program_file.hpp"
#include "tools/cuwarden/program/sanitizers.hpp"
#include "tools/cuwarden/reports/given_reports.hpp"
#include "tools/cuwarden/reports/given_suppressions.hpp"
#include "tools/cuwarden/reports/report_names.hpp"
#include "tools/cuwarden/verbs/page_beside.hpp"
#include "tools/cuwarden/verbs/run_reports.hpp"
#include "tools/cuwarden/verbs/temporary_file.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

namespace fs = std::filesystem;

constexpr int status_not_found = 127, status_not_runnable = 126;  // the shells' exit statuses
// Least size of the simulated GPU. A context takes 527 MiB, and the program needs room beside it.
constexpr std::uint64_t least_simulated_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t most_simulated_bytes = std::uint64_t{1} << 50;
constexpr std::uint64_t least_report_bytes = std::uint64_t{64} << 10;
constexpr std::size_t most_summaries = 4;  // further reports get one line each

// --- set-up ------------------------------------------------------------------------------------

// Returns the reason why the program cannot run on the simulated GPU; empty if it can.
std::string refusal(const ProgramFile& program) {
  if (!program.is_elf) return {};  // a shell script without `#!`
  if (!program.is_64_bit_x86) return program.path + " is not a 64-bit x86 program";
  if (program.is_static) {
    return program.path + " is linked statically, so nothing can be preloaded into it";
  }
  if (!program.static_runtimes.empty()) {
    return program.static_runtimes.front() +
           " carries a static CUDA runtime, which the simulated GPU cannot stand in for; link "
           "with nvcc -cudart shared";
  }
  for (const NeededLibrary& library : program.libraries) {
    if (is_shared_runtime(library.name) && library.name != "libcudart.so.13") {
      return program.path + " needs " + library.name +
             ", and the simulated GPU comes with libcudart.so.13 only";
    }
  }
  return {};
}

bool can_be_preloaded(const std::string& path) {
  return path.find_first_of(" :\t\n") == std::string::npos;
}

// Returns the value with an absolute path in it, since the program may change its folder before its
// first CUDA call. The path stays relative if the current folder has no path: it is too deep, or
// was removed.
std::string independent_of_folder(const std::string& name, const std::string& value) {
  std::error_code has_no_path;
  const auto usable = [&](const std::string& path, const std::string& otherwise) {
    return has_no_path || path.size() >= PATH_MAX ? otherwise : path;
  };
  const auto absolute = [&](const std::string& path) {
    return usable(fs::absolute(path, has_no_path), path);
  };
  if (name == "CUWARDEN_LEDGER_DIR" || name == "CUWARDEN_SUPPRESSIONS") return absolute(value);
  if (name == "CUWARDEN_REPORT" && !value.starts_with('/')) {
    std::string folder;
    for (const char letter : fs::current_path(has_no_path).string())
      folder += letter == '%' ? "%%" : std::string(1, letter);
    return usable(folder + "/" + value, value);
  }
  const auto colon = name == "CUWARDEN_LOG" ? value.find(':') : value.npos;
  if (colon == value.npos) return value;
  return value.substr(0, colon + 1) + absolute(value.substr(colon + 1));
}

// Sets the program's environment up. Returns false after an error line.
bool set_up(const RunVerb& verb, const ProgramFile& program, const TemporaryFile& list,
            const std::optional<TemporaryFile>& devices, Environment& environment) {
  const auto shim = find_shim();
  if (!shim) {
    print_error("libcuwarden.so is neither beside this command nor in ../lib; reinstall cuwarden");
    return false;
  }
  std::string preloads = *shim;
  if (verb.simulated_bytes) {
    if (*verb.simulated_bytes < least_simulated_bytes) {
      print_error("--simulate: " + human_bytes(*verb.simulated_bytes) +
                  " is too little: a context takes 527 MiB of it, and the program's memory comes "
                  "on top; give "
                  "a size of 1GiB or more");
      return false;
    }
    if (*verb.simulated_bytes > most_simulated_bytes) {
      print_error("--simulate: give a size of 1024TiB or less");
      return false;
    }
    const std::string reason = refusal(program);
    if (!reason.empty()) {
      print_error("--simulate: " + reason);
      return false;
    }
    const auto simulated = find_simulated_gpu();
    if (!simulated) {
      print_error("--simulate: the simulated GPU is not installed beside this command");
      return false;
    }
    // The simulated libraries are preloaded, since the program's RPATH may lead to a real CUDA.
    preloads += ":" + *simulated + "/libcuda.so.1:" + *simulated + "/libcudart.so.13";
    environment.prepend("LD_LIBRARY_PATH", *simulated);
    environment.set("CUWARDEN_SIM_MEMORY", std::to_string(*verb.simulated_bytes));
    // All processes that the program starts share one simulated device, as they would a real one.
    if (devices && devices->error() == 0)
      environment.set_if_missing("CUWARDEN_SIM_SHARED", devices->path());
  }
  // The dynamic linker splits LD_PRELOAD at blanks and colons and has no way to quote them.
  std::string unquoted = preloads;
  std::erase(unquoted, ':');
  if (!can_be_preloaded(*shim) || !can_be_preloaded(unquoted)) {
    print_error(*shim + ": a path with a blank or a colon cannot be preloaded; move it");
    return false;
  }
  environment.set("LD_PRELOAD",
                  preloaded_behind_sanitizers(environment.get("LD_PRELOAD"), preloads));
  environment.set("ASAN_OPTIONS", options_behind_preloads(environment.get("ASAN_OPTIONS")));
  environment.set_if_missing("CUWARDEN_FRAMEWORKS", "on");
  for (const auto& [name, value] : verb.settings)
    environment.set(name, independent_of_folder(name, value));
  if (const std::string file = environment.get("CUWARDEN_SUPPRESSIONS"); !file.empty())
    environment.set("CUWARDEN_SUPPRESSIONS", independent_of_folder("CUWARDEN_SUPPRESSIONS", file));
  // NVTX has room for one tool.
  if (!environment.get("CUWARDEN_STEP_RANGE").empty())
    environment.set_if_missing("NVTX_INJECTION64_PATH", *shim);
  if (list.error() == 0) environment.set("CUWARDEN_REPORT_LIST", list.path());
  return true;
}

// Reads the file of suppressions, if the options name one, so that a wrong one is told before the
// program runs. Returns false after an error line.
bool are_suppressions_readable(const RunVerb& verb) {
  std::vector<std::string> ignored;
  return std::ranges::all_of(verb.settings, [&](const auto& setting) {
    return setting.first != "CUWARDEN_SUPPRESSIONS" || read_suppressions(setting.second, ignored);
  });
}

// --- the end -----------------------------------------------------------------------------------

// Returns RLIMIT_FSIZE in bytes, which the program inherits. Null: unlimited.
std::optional<std::uint64_t> file_size_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

// Returns the line that says why there is no report, if no other line has said it.
std::string why_no_report(const RunVerb& verb, std::optional<int> signal) {
  const char* enabled = std::getenv("CUWARDEN_ENABLED");
  if (enabled != nullptr && std::string_view(enabled) == "0")
    return "no report: CUWARDEN_ENABLED=0 turns recording off";
  const std::string end =
      signal ? " before the program was killed by signal " + numbered_signal(*signal) : "";
  if (const auto limit = file_size_limit(); limit && *limit < least_report_bytes)
    return "no report was found: no file may be larger than " + std::to_string(*limit) +
           " bytes here (ulimit -f), so that no process can keep its records";
  if (!verb.simulated_bytes && dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr)
    return "no report: no CUDA call reached a driver" + end +
           ", since there is no libcuda.so.1 here; --simulate 16GiB gives the program a simulated "
           "GPU, `cuwarden doctor` says more";
  return "no report was found: as far as is known, no process made a CUDA call that reached the "
         "driver and could keep records of it here" +
         end +
         ". cuwarden does not see processes that were started without this environment (env -i, "
         "sudo, ssh), or that first changed their root folder (chroot), their limits (open files, "
         "file sizes) or their system calls (seccomp)";
}

// Returns the folders in which processes with this environment leave ledgers and reports.
RunPaths paths_of_run(Environment& environment, const TemporaryFile& list) {
  RunPaths run_paths;
  run_paths.list = list.path();
  run_paths.start = time(nullptr);
  const std::string report = environment.get("CUWARDEN_REPORT");
  const std::size_t slash = report.rfind('/');
  std::error_code ignored;
  if (fs::is_directory(report, ignored)) {
    run_paths.report_folder = report;
  } else if (slash != report.npos) {
    run_paths.report_folder = report.substr(0, std::max<std::size_t>(slash, 1));
  }
  run_paths.ledger_folders = usual_ledger_folders();
  run_paths.ledger_folders.push_back(run_paths.report_folder);
  if (const std::string chosen = environment.get("CUWARDEN_LEDGER_DIR"); !chosen.empty())
    run_paths.ledger_folders.push_back(chosen);
  return run_paths;
}

// Enters in the program's report that a signal has killed it. The report says that the program has
// exited if the signal came after that was written. A file that cannot be replaced stays as it is.
void correct_end(const std::string& path, const RecoveryRequest& child) {
  std::string ignored;
  auto copy = load_copy_with_progress(path, ignored);
  if (!copy) return;
  model::Process& process = copy->report().process;
  if (process.pid != static_cast<std::uint64_t>(child.waited_for) || process.signal ||
      process.end_reason == "running")
    return;
  process.end_reason = "signal";
  process.exit_status.reset();
  process.signal = static_cast<std::uint64_t>(*child.signal);
  ignored = copy->replace();
}

// Returns how reports are shown on standard error.
TextOptions options_of_text() {
  TextOptions options;
  options.colour = wants_colour(STDERR_FILENO);
  options.columns = columns_for(STDERR_FILENO);
  options.ascii = wants_ascii();
  return options;
}

// Shows the reports, adds them to the checks, and writes the pages that the user asks for. No page
// is written beside another user's report: that user could have it replace any file.
void show(const RunVerb& verb, const std::vector<RunReport>& reports, LeakChecks& checks) {
  const bool wants_checks = verb.checks.is_asked_for();
  ReportNames names;
  TextOptions options = options_of_text();
  options.unmatched_suppressions = reports.size() == 1;
  UnmatchedSuppressions unmatched;
  bool all_read = true;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto& [path, content] = reports[i];
    std::string error;
    if (!content) names.complete_file(path);
    const bool wants_page = verb.wants_pages && !content;
    std::optional<IndexedReport> indexed;
    // A suppression that matched nothing so far may match in a report without a summary.
    if (i < most_summaries || wants_checks || wants_page || unmatched.has_any()) {
      auto report =
          content ? parse_with_progress(*content, path, error) : load_with_progress(path, error);
      if (report) {
        if (!content) names.complete(*report, names.paths_in(path));
        indexed.emplace(std::move(*report));
        if (i < most_summaries)
          print(STDERR_FILENO,
                "\n" + text_report(*indexed, options, ToldProgress("making the text of " + path)));
        checks.add(path, *indexed);
        unmatched.add((*indexed)->suppressions);
      }
    }
    if (error.empty()) {
      if (i < most_summaries) print(STDERR_FILENO, "\n");
      print_line(STDERR_FILENO, "report: " + path);
      if (wants_page && indexed) write_page_beside(path, *indexed);
    } else {
      all_read = false;
      print_error(error);
      checks.add_doubt(error);
    }
  }
  // A suppression may match in a report that could not be read.
  if (reports.size() > 1 && all_read && unmatched.has_any())
    print(STDERR_FILENO,
          "\n" + fitted(unmatched.text(), {options.columns, options.ascii, options.full_stacks}));
}

// Shows the reports of the processes that have ended, or one line why there are none. Adds them to
// the checks.
void tell_reports(const RunVerb& verb, Environment& environment, const TemporaryFile& list,
                  const RunPaths& run_paths, const RecoveryRequest& child, LeakChecks& checks) {
  const auto [reports, said, unwanted] = reports_of_run(list, run_paths, child);
  if (reports.empty() && !said && list.error() == 0) {
    const bool none_wanted = environment.get("CUWARDEN_REPORT") == path_of_no_report;
    print_error(none_wanted ? "no report: CUWARDEN_REPORT=/dev/null asks for none"
                : unwanted  ? "no report: nothing happened that CUWARDEN_REPORT_IF asks for"
                            : why_no_report(verb, child.signal));
  }
  // Without a report, nothing is known of a process's leaks, unless leaks are a reason for one.
  const auto wanted = parse_report_if(environment.get("CUWARDEN_REPORT_IF"));
  if (unwanted &&
      !(wanted && wanted->leak && environment.get("CUWARDEN_REPORT") != path_of_no_report))
    checks.add_doubt(
        "a process left no report, because CUWARDEN_REPORT_IF or CUWARDEN_REPORT asks for none");
  if (said)
    checks.add_doubt(
        "a process left no report that can be read, or another `cuwarden run` has shown it");
  if (reports.empty() && !unwanted) checks.add_doubt("there is no report");
  if (child.signal)
    for (const RunReport& report : reports)
      if (!report.content) correct_end(report.path, child);
  show(verb, reports, checks);
  // The program of another run was this command.
  if (const char* outer = std::getenv("CUWARDEN_REPORT_LIST"); outer != nullptr && *outer != '\0')
    add_entry(outer, shown_by_inner_run);
}

}  // namespace

int run_verb(const RunVerb& verb) {
  LeakChecks checks(verb.checks, options_of_text(), STDERR_FILENO);
  if (verb.wants_pages && !is_page_there()) return 2;
  if (!checks.read_baseline() || !are_suppressions_readable(verb)) return 2;
  const auto path = find_program(verb.command.front());
  if (!path) {
    print_error(name_in_a_line(verb.command.front()) + ": no such command");
    return status_not_found;
  }
  ProgramFile program;
  if (verb.simulated_bytes) program = inspect_program(*path);
  TemporaryFile list;
  std::optional<TemporaryFile> devices;
  if (verb.simulated_bytes) devices.emplace();
  if (list.error() != 0) {
    print_error("cannot make " + list.path() + ": " + error_text(list.error()) +
                "; no summary will be shown (set TMPDIR to a folder that can be written)");
  }
  Environment environment;
  if (!set_up(verb, program, list, devices, environment)) return 2;

  int wait_status = 0;
  RecoveryRequest child;
  child.path_is_known = true;
  const RunPaths run_paths = paths_of_run(environment, list);
  if (const int error =
          run_child(*path, verb.command, environment.entries(), child.waited_for, wait_status)) {
    print_error("cannot run " + *path + ": " + error_text(error));
    return error == ENOENT ? status_not_found : status_not_runnable;
  }
  if (WIFSIGNALED(wait_status)) child.signal = WTERMSIG(wait_status);
  // The program's status is this command's, whatever becomes of the reports.
  const int status = exit_status_of(wait_status);
  status_without_memory(status);
  list.remove_name();
  if (devices) devices->remove_name();
  tell_reports(verb, environment, list, run_paths, child, checks);
  const int checked = checks.finish();
  if (status != 0 && !verb.checks.new_baseline.empty())
    print_error("the program ended with status " + std::to_string(status) +
                ": the baseline may lack leaks, or have memory that was in use");
  if (status != 0 || checked == 0) return status;
  return checked == 1 ? verb.failed_check_status.value_or(1) : checked;
}

}  // namespace cuwarden
