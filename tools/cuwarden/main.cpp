// The `cuwarden` command: reads the command line and calls the verb.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <map>
#include <new>
#include <sstream>
#include <string_view>

#include "reporters/words/setting_kinds.hpp"
#include "tools/cuwarden/enough_stack.hpp"
#include "tools/cuwarden/ledgers/ledger_file.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/usage.hpp"
#include "tools/cuwarden/verbs/verbs.hpp"

namespace cuwarden {
namespace {

constexpr int wrong_usage = 2;

int usage_error(const std::string& line) {
  print_error(line);
  return wrong_usage;
}

using Text = const std::string&;

// An option of `run` that sets a setting of the shim. Settings without an option have an empty
// name.
struct SettingOption {
  const char *name, *variable, *type, *help;
  bool (*is_accepted)(std::string_view);
  std::string_view accepted;
};

template <class Kind>
bool is_accepted(std::string_view text) {
  typename Kind::Value value{};
  return Kind::read(value, text);
}

constexpr SettingOption setting_options[] = {
#define SETTING(member, kind, variable, fallback, in_words, option, type, help, meaning) \
  {option, variable, type, help, is_accepted<setting_kinds::kind>, setting_kinds::kind::accepted},
#include "reporters/words/settings.def"
};

CLI::App* declare_run(CLI::App& app, RunVerb& run) {
  CLI::App* verb = app.add_subcommand("run", "run a program under the shim, show its report");
  set_usage(*verb, "run [OPTIONS] -- CMD...");
  verb->prefix_command();
  for (const SettingOption& option : setting_options) {
    if (*option.name == '\0') continue;
    const auto take = [&run, &option](Text text) {
      if (!option.is_accepted(text))
        throw CLI::ValidationError(std::string(option.name) + " takes " +
                                   std::string(option.accepted) + ", not '" + text + "'");
      run.settings.emplace_back(option.variable, text);
    };
    verb->add_option_function<std::string>(option.name, take,
                                           std::string(option.help) + " (" + option.variable + ")")
        ->type_name(option.type);
  }
  verb->add_option_function<std::string>(
          "--simulate", [&run](Text text) { run.simulated_bytes = size_value("--simulate", text); },
          "run on a simulated GPU with SIZE of memory")
      ->type_name("SIZE");
  return verb;
}

std::string names_of_formats() {
  std::string names;
  for (const Format& format : report_formats())
    names += (names.empty() ? "" : ", ") + std::string(format.name) + " (" +
             std::string(format.meaning) + ")";
  return names;
}

// Declares the option --format, which sets `format`. `what`: text for the help, up to the names.
CLI::Option* add_format(CLI::App& verb, const Format*& format, const std::string& what) {
  const auto take = [&format](Text text) {
    format = report_format(text);
    if (format == nullptr)
      throw CLI::ValidationError("--format takes " + names_of_formats() + ", not '" + text + "'");
  };
  return verb
      .add_option_function<std::string>("--format", take, what + " as " + names_of_formats())
      ->type_name("NAME");
}

CLI::App* declare_report(CLI::App& app, ReportVerb& report) {
  CLI::App* verb = app.add_subcommand("report", "show a report as text, for people");
  set_usage(*verb, "report [OPTIONS] FILE-OR-FOLDER...");
  verb->add_option("FILE", report.files,
                   "reports (-: standard input), ledgers that killed processes left, or folders: a "
                   "line for each of several reports in one")
      ->type_name("");
  verb->add_option_function<std::string>(
          "--by",
          [&report](Text text) {
            const std::map<std::string, GroupBy> groupings{{"stack", GroupBy::stack},
                                                           {"module", GroupBy::module},
                                                           {"api", GroupBy::api},
                                                           {"kind", GroupBy::kind}};
            const auto grouping = groupings.find(text);
            if (grouping == groupings.end()) {
              throw CLI::ValidationError("--by takes stack, module, api or kind, not '" + text +
                                         "'");
            }
            report.text.by = grouping->second;
          },
          "sum leaks by stack (default), module, api or kind")
      ->type_name("WHAT");
  add_format(*verb, report.format, "show a report");
  verb->add_option_function<std::string>(
          "--top", [&report](Text text) { report.text.top = count_value("--top", text); },
          "groups to show; 0: all (default 10)")
      ->type_name("N");
  verb->add_option_function<std::string>(
          "--min-bytes",
          [&report](Text text) { report.text.min_bytes = size_value("--min-bytes", text); },
          "show no smaller groups")
      ->type_name("SIZE");
  verb->add_option("--module", report.text.module,
                   "show and judge only leaks from modules whose path contains this")
      ->type_name("TEXT");
  verb->add_flag(
      "--fail-on-leak", report.fail_on_leak,
      "exit with 1 when there are leaks (with --module: in such modules; --min-bytes and --top "
      "only choose what is shown), or when a report is too incomplete to tell");
  verb->add_option_function<std::vector<std::string>>(
          "--symbols",
          [&report](const std::vector<std::string>& folders) {
            for (const std::string& folder : folders) {
              struct stat status {};
              if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
                throw CLI::ValidationError(
                    "--symbols takes a folder with files that ran, or their "
                    "debug files; '" +
                    folder + "' is none");
            }
            report.symbol_folders = folders;
          },
          "find functions and lines in the debug files in this folder, by build id")
      ->type_name("DIR")
      ->allow_extra_args(false);
  CLI::Option* const redact = verb->add_flag(
      "--redact", report.redact,
      "write a copy without host, user, command line, folders and environment, to send to others");
  verb->add_option("-o,--output", report.output,
                   "path of that copy; - for standard output (default: beside the report, with "
                   ".redacted before .json)")
      ->type_name("PATH")
      ->needs(redact);
  return verb;
}

void add_pid(CLI::App& verb, pid_t& pid) {
  verb.add_option_function<std::string>(
          "PID",
          [&pid](Text text) {
            const std::uint64_t value = count_value("PID", text);
            if (value == 0 || value > INT_MAX) {
              throw CLI::ValidationError("PID is the number of a running process, not '" + text +
                                         "'");
            }
            pid = static_cast<pid_t>(value);
          },
          "a running process")
      ->type_name("");
}

CLI::App* declare_snapshot(CLI::App& app, SnapshotVerb& snapshot) {
  CLI::App* verb =
      app.add_subcommand("snapshot", "write a report of a live process, which is not disturbed");
  set_usage(*verb, "snapshot [OPTIONS] PID");
  add_pid(*verb, snapshot.pid);
  verb->add_option("-o,--output", snapshot.output,
                   "report path; - for standard output (default: the name of the report that the "
                   "process will write, with .snapshot before .json, in this folder)")
      ->type_name("PATH")
      ->excludes(add_format(*verb, snapshot.format,
                            "write no file, but show the report on standard output"));
  return verb;
}

CLI::App* declare_recover(CLI::App& app, RecoverVerb& recover) {
  CLI::App* verb =
      app.add_subcommand("recover", "write the reports of processes that died without one");
  set_usage(*verb, "recover [OPTIONS] [DIR...]");
  verb->add_option("-o,--output", recover.output,
                   "path of the report of one ledger, or a folder for the reports (default: where "
                   "each process would have written it); CUWARDEN_REPORT_IF does not count then")
      ->type_name("PATH");
  verb->add_option("DIR", recover.locations,
                   "folders with ledgers, or ledgers (default: where the shim keeps them: "
                   "CUWARDEN_LEDGER_DIR, this folder, TMPDIR, /dev/shm, /tmp)")
      ->type_name("");
  verb->add_option_function<std::string>(
          "--timeout",
          [&recover](Text text) {
            const auto time = parse_duration_ns(text);
            if (!time || *time == 0 || *time > std::uint64_t{INT64_MAX} / 10) {
              throw CLI::ValidationError(std::string("--timeout takes ") + accepted_duration +
                                         ", not '" + text + "'");
            }
            recover.longest = std::chrono::nanoseconds(*time);
          },
          "longest time for one ledger of another user; root only (default 2m)")
      ->type_name("TIME");
  return verb;
}

CLI::App* declare_top(CLI::App& app, TopVerb& top) {
  CLI::App* verb = app.add_subcommand(
      "top", "watch a live process by call stack, or all live processes in a line each");
  set_usage(*verb, "top [--once [--json]] [PID]");
  add_pid(*verb, top.pid);
  verb->add_flag("--once", top.once, "print once and end (the default without a terminal)");
  verb->add_flag("--json", top.json, "print once, as one JSON object (cuwarden.top/1)");
  return verb;
}

CLI::App* declare_doctor(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("doctor", "show how the shim works here, and how CMD reaches CUDA");
  set_usage(*verb, "doctor [-- CMD...]");
  verb->prefix_command();
  return verb;
}

CLI::App* declare_help(CLI::App& app, std::string& topic) {
  CLI::App* verb = app.add_subcommand("help", "show this text, or the options of a verb");
  set_usage(*verb, "help [VERB]");
  verb->add_option("VERB", topic, "a verb")->type_name("");
  return verb;
}

CLI::App* declare_version(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("version", "show the version");
  set_usage(*verb, "version");
  return verb;
}

std::string names_of(const std::vector<CLI::App*>& verbs) {
  std::string text;
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < verbs.size() ? ", " : " and ") + verbs[i]->get_name();
  }
  return text;
}

int command_line(int count, char** arguments) {
  // The words behind a lone `--` are the program's command line; they are not parsed.
  int own_count = count;
  std::vector<std::string> command;
  bool separated = false;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) != "--") continue;
    own_count = i;
    separated = true;
    command.assign(arguments + i + 1, arguments + count);
    break;
  }

  CLI::App app("cuwarden records the CUDA memory allocations of a program with their call stacks");
  app.name("cuwarden");
  set_usage(app, "VERB [OPTIONS] ...    (cuwarden VERB --help says more)");
  constexpr const char* version = "cuwarden " CUWARDEN_VERSION;
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  RunVerb run;
  ReportVerb report;
  report.text.colour = wants_colour(STDOUT_FILENO);
  SnapshotVerb snapshot;
  RecoverVerb recover;
  CLI::App* const run_app = declare_run(app, run);
  CLI::App* const report_app = declare_report(app, report);
  CLI::App* const snapshot_app = declare_snapshot(app, snapshot);
  CLI::App* const recover_app = declare_recover(app, recover);
  TopVerb top;
  CLI::App* const top_app = declare_top(app, top);
  CLI::App* const doctor_app = declare_doctor(app);
  std::string topic;
  CLI::App* const help_app = declare_help(app, topic);
  CLI::App* const version_app = declare_version(app);
  const std::vector<CLI::App*> verbs{run_app, report_app, snapshot_app, recover_app,
                                     top_app, doctor_app, help_app,     version_app};

  const std::string overview = app.help();  // taken now: after parsing, help() is that of a verb
  if (count < 2) {
    print(STDERR_FILENO, overview);
    return wrong_usage;
  }
  const std::string first = arguments[1];
  const auto find_verb = [&](const std::string& name) {
    const auto verb = std::ranges::find(verbs, name, [](auto* each) { return each->get_name(); });
    return verb == verbs.end() ? nullptr : *verb;
  };
  const auto no_such_verb = [&](const std::string& name) {
    return usage_error("there is no verb '" + name + "'; there are " + names_of(verbs));
  };
  const bool is_verb = find_verb(first) != nullptr;
  if (!first.starts_with('-') && !is_verb) return no_such_verb(first);
  try {
    app.parse(own_count, arguments);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text, ignored;
    app.exit(asked, text, ignored);
    print(STDOUT_FILENO, text.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    if (!is_verb) return usage_error("there is no option " + first + "; see cuwarden --help");
    return usage_error(usage_line(error, app, first));
  }

  if (help_app->parsed() || version_app->parsed()) {
    if (!command.empty()) return usage_error(first + ": unexpected word: " + command.front());
    if (version_app->parsed()) {
      print_line(STDOUT_FILENO, version);
      return 0;
    }
    const CLI::App* const about = find_verb(topic);
    if (!topic.empty() && about == nullptr) return no_such_verb(topic);
    print(STDOUT_FILENO, about == nullptr ? overview : about->help("", CLI::AppFormatMode::Normal));
    return 0;
  }
  // Behind `--` there may be file names that begin with a dash.
  if (report_app->parsed()) {
    report.files.insert(report.files.end(), command.begin(), command.end());
    if (report.files.empty())
      return usage_error("report: no file is given; usage: cuwarden report FILE-OR-FOLDER...");
    if (!report.output.empty() && report.files.size() > 1)
      return usage_error("report: --output takes the copy of one report; give one FILE");
    return report_verb(report);
  }
  if (recover_app->parsed()) {
    recover.locations.insert(recover.locations.end(), command.begin(), command.end());
    return recover_verb(recover);
  }
  if (snapshot_app->parsed()) {
    if (!command.empty()) return usage_error("snapshot: unexpected word: " + command.front());
    if (snapshot.pid == 0)
      return usage_error("snapshot: no process is given; usage: cuwarden snapshot PID");
    return snapshot_verb(snapshot);
  }
  if (top_app->parsed()) {
    if (!command.empty()) return usage_error("top: unexpected word: " + command.front());
    return top_verb(top);
  }
  const std::vector<std::string> rest = (run_app->parsed() ? run_app : doctor_app)->remaining();
  if (!rest.empty() && (separated || rest.front().starts_with('-'))) {
    return usage_error(
        first + (rest.front().starts_with('-') ? ": there is no option " : ": unexpected word: ") +
        rest.front() + "; see cuwarden " + first + " --help");
  }
  if (!separated) command = rest;
  if (doctor_app->parsed()) return doctor_verb(command);
  if (command.empty())
    return usage_error("run: no program is given; usage: cuwarden run [options] -- CMD...");
  run.command = std::move(command);
  return run_verb(run);
}

// Returns the exit status.
int whole_command(int count, char** arguments) {
  try {
    return finish_output(command_line(count, arguments));
  } catch (const std::bad_alloc&) {
    print_error("not enough memory; allow more (ulimit -v), or give smaller input");
    return wrong_usage;
  } catch (const std::exception& error) {
    print_error(std::string("internal error: ") + error.what());
    return wrong_usage;
  }
}

}  // namespace
}  // namespace cuwarden

int main(int count, char** arguments) {
  cuwarden::prepare_output();
  cuwarden::zeros_where_files_shrink();
  return cuwarden::with_enough_stack(cuwarden::whole_command, count, arguments);
}
