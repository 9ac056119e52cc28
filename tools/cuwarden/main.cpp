// The `cuwarden` command: reads the command line and calls the verb.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cuwarden/declared_verbs.hpp"
#include "tools/cuwarden/enough_stack.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/output/interruption.hpp"
#include "tools/cuwarden/usage.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

constexpr int wrong_usage = 2;
constexpr const char* version = "cuwarden " CUWARDEN_VERSION;

int usage_error(const std::string& line) {
  print_error(line);
  return wrong_usage;
}

// The arguments of the command. The words behind a lone `--` are the program's command line; they
// are not parsed.
struct Words {
  Words(int count, char** given) : own_count(count) {
    for (int i = 1; i < count; ++i) {
      if (std::string_view(given[i]) != "--") continue;
      own_count = i;
      separated = true;
      command.assign(given + i + 1, given + count);
      return;
    }
  }

  int own_count;                     // number of arguments before the lone `--`
  bool separated = false;            // true if there is a lone `--`
  std::vector<std::string> command;  // words behind it
};

// Says that there is no verb of this name. Returns the exit status.
int no_such_verb(const Verbs& verbs, const std::string& name) {
  return usage_error("there is no verb '" + name + "'; there are " + verbs.names());
}

// Answers `help` and `version`. `overview`: the help of the whole command. Returns the exit status.
int tell(const Verbs& verbs, const std::string& overview) {
  if (verbs.version_app->parsed()) {
    print_line(STDOUT_FILENO, version);
    return 0;
  }
  const CLI::App* const about = verbs.find(verbs.topic);
  if (!verbs.topic.empty() && about == nullptr) return no_such_verb(verbs, verbs.topic);
  print(STDOUT_FILENO, about == nullptr ? overview : about->help("", CLI::AppFormatMode::Normal));
  return 0;
}

// Runs `run` or `doctor`, whichever was parsed. Returns the exit status.
int start_program(Verbs& verbs, Words& words) {
  CLI::App* const verb = verbs.run_app->parsed() ? verbs.run_app : verbs.doctor_app;
  const std::vector<std::string> rest = verb->remaining();
  if (!rest.empty() && (words.separated || rest.front().starts_with('-'))) {
    const std::string& name = verb->get_name();
    return usage_error(
        name + (rest.front().starts_with('-') ? ": there is no option " : ": unexpected word: ") +
        rest.front() + "; see cuwarden " + name + " --help");
  }
  if (!words.separated) words.command = rest;
  if (verb == verbs.doctor_app) return doctor_verb(words.command);
  if (words.command.empty())
    return usage_error("run: no program is given; usage: cuwarden run [options] -- CMD...");
  // The number alone asks for a check, as it does with other tools.
  CheckOptions& checks = verbs.run.checks;
  if (verbs.run.failed_check_status && !checks.gate.is_asked_for()) {
    if (checks.baseline.empty())
      checks.gate.on_leak = FailingLeaks::all;
    else
      checks.gate.on_new = true;
  }
  verbs.run.command = std::move(words.command);
  return run_verb(verbs.run);
}

// Runs `diff`. `behind_dashes`: words behind a lone `--`, which may be file names that begin with a
// dash. Returns the exit status.
int compare(DiffVerb& diff, const std::vector<std::string>& behind_dashes) {
  std::vector<std::string> files;
  for (const std::string& name : {diff.before, diff.now})
    if (!name.empty()) files.push_back(name);
  files.insert(files.end(), behind_dashes.begin(), behind_dashes.end());
  if (files.size() != 2)
    return usage_error("diff: give two reports, or folders of reports: cuwarden diff OLD NEW");
  diff.before = files[0];
  diff.now = files[1];
  return diff_verb(diff);
}

// Runs the verb that was parsed. Returns the exit status.
int run_parsed(Verbs& verbs, Words& words, const std::string& overview) {
  const std::vector<std::string>& command = words.command;
  verbs.suit_output();
  // Behind `--` there may be file names that begin with a dash.
  if (verbs.report_app->parsed()) {
    ReportVerb& report = verbs.report;
    report.files.insert(report.files.end(), command.begin(), command.end());
    if (report.files.empty())
      return usage_error("report: no file is given; usage: cuwarden report FILE-OR-FOLDER...");
    if (!report.output.empty() && report.files.size() > 1)
      return usage_error("report: --output takes the copy of one report; give one FILE");
    return report_verb(report);
  }
  if (verbs.merge_app->parsed()) {
    MergeVerb& merge = verbs.merge;
    merge.files.insert(merge.files.end(), command.begin(), command.end());
    if (merge.files.empty())
      return usage_error("merge: no file is given; usage: cuwarden merge FILE-OR-FOLDER...");
    return merge_verb(merge);
  }
  if (verbs.export_app->parsed()) {
    ExportVerb& exported = verbs.exported;
    exported.files.insert(exported.files.end(), command.begin(), command.end());
    if (exported.files.empty() || exported.format == nullptr)
      return usage_error("export: usage: cuwarden export --format NAME FILE-OR-FOLDER...");
    return export_verb(exported);
  }
  if (verbs.diff_app->parsed()) return compare(verbs.diff, command);
  if (verbs.recover_app->parsed()) {
    std::vector<std::string>& locations = verbs.recover.locations;
    locations.insert(locations.end(), command.begin(), command.end());
    return recover_verb(verbs.recover);
  }
  if (verbs.run_app->parsed() || verbs.doctor_app->parsed()) return start_program(verbs, words);
  if (!command.empty()) {
    const auto verb = std::ranges::find_if(verbs.all, [](auto* each) { return each->parsed(); });
    return usage_error((*verb)->get_name() + ": unexpected word: " + command.front());
  }
  if (verbs.snapshot_app->parsed()) {
    if (verbs.snapshot.pid == 0 && verbs.snapshot.ledger.empty())
      return usage_error("snapshot: no process is given; usage: cuwarden snapshot PID");
    return snapshot_verb(verbs.snapshot);
  }
  if (verbs.top_app->parsed()) return top_verb(verbs.top);
  return tell(verbs, overview);
}

int command_line(int count, char** arguments) {
  Words words(count, arguments);
  CLI::App app("cuwarden records the CUDA memory allocations of a program with their call stacks");
  app.name("cuwarden");
  set_usage(app, "VERB [OPTIONS] ...    (cuwarden VERB --help says more)");
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  Verbs verbs(app);

  const std::string overview = app.help();  // taken now: after parsing, help() is that of a verb
  if (count < 2) {
    print(STDERR_FILENO, overview);
    return wrong_usage;
  }
  const std::string first = arguments[1];
  const bool is_verb = verbs.find(first) != nullptr;
  if (!first.starts_with('-') && !is_verb) return no_such_verb(verbs, first);
  try {
    app.parse(words.own_count, arguments);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text, ignored;
    app.exit(asked, text, ignored);
    print(STDOUT_FILENO, text.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    if (!is_verb) return usage_error("there is no option " + first + "; see cuwarden --help");
    return usage_error(usage_line(error, app, first));
  }
  return run_parsed(verbs, words, overview);
}

// Ends the command after an exception that cannot be caught. The JSON library needs memory to
// destroy a document, and its destructor throws if there is none.
[[noreturn]] void end_uncaught() noexcept {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    _exit(no_memory());
  } catch (...) {
  }
  std::abort();
}

// Returns the exit status.
int whole_command(int count, char** arguments) {
  std::set_terminate(end_uncaught);
  try {
    return finish_output(command_line(count, arguments));
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::exception& error) {
    print_error(std::string("internal error: ") + error.what());
    return wrong_usage;
  }
}

}  // namespace
}  // namespace cuwarden

int main(int count, char** arguments) {
  cuwarden::prepare_output();
  cuwarden::clean_up_when_interrupted();
  cuwarden::zeros_where_files_shrink();
  return cuwarden::with_enough_stack(cuwarden::whole_command, count, arguments);
}
