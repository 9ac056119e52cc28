#include "tools/cuwarden/declared_verbs.hpp"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>
#include <string_view>

#include "reporters/words/setting_kinds.hpp"
#include "tools/cuwarden/declared_options.hpp"
#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/usage.hpp"

namespace cuwarden {
namespace {

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
#define SETTING(member, kind, of_variable, fallback, in_words, option, of_type, in_help, meaning) \
  {.name = option,                                                                                \
   .variable = of_variable,                                                                       \
   .type = of_type,                                                                               \
   .help = in_help,                                                                               \
   .is_accepted = is_accepted<setting_kinds::kind>,                                               \
   .accepted = setting_kinds::kind::accepted},
#include "runtime_hooks/core/settings/settings.def"
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
  verb->add_flag("--html", run.wants_pages, "write a page for a browser beside each report");
  add_checks(*verb, run.checks);
  verb->add_option_function<std::string>(
          "--error-exitcode",
          [&run](Text text) {
            const std::uint64_t status = count_value("--error-exitcode", text);
            if (status == 0 || status > 255)
              throw CLI::ValidationError(
                  "--error-exitcode takes an exit status from 1 to 255, not '" + text + "'");
            run.failed_check_status = static_cast<int>(status);
          },
          "exit status if a check fails and the program's own is 0 (default 1); alone, it turns on "
          "--fail-on-leak, and with --baseline --fail-on-new")
      ->type_name("N");
  return verb;
}

// `formats`: those of report_formats() or export_formats().
template <class Formats>
std::string names_of_formats(const Formats& formats) {
  std::string names;
  for (const auto& format : formats)
    names += (names.empty() ? "" : ", ") + std::string(format.name) + " (" +
             std::string(format.meaning) + ")";
  return names;
}

// Declares the option --format, which sets `format`. `what`: text for the help, up to the names.
CLI::Option* add_format(CLI::App& verb, const Format*& format, const std::string& what) {
  const auto take = [&format](Text text) {
    format = report_format(text);
    if (format == nullptr)
      throw CLI::ValidationError("--format takes " + names_of_formats(report_formats()) +
                                 ", not '" + text + "'");
  };
  return verb
      .add_option_function<std::string>("--format", take,
                                        what + " as " + names_of_formats(report_formats()))
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
  add_top(*verb, report.text.top);
  verb->add_option_function<std::string>(
          "--min-bytes",
          [&report](Text text) { report.text.min_bytes = size_value("--min-bytes", text); },
          "show no smaller groups")
      ->type_name("SIZE");
  add_choice(*verb, report.text);
  add_checks(*verb, report.checks);
  add_suppressions(*verb, report.suppressions);
  verb->add_flag("--print-suppressions", report.checks.prints_suppressions,
                 "print lines for such a file that match the leaks, and nothing else");
  add_symbols(*verb, report.symbol_folders);
  CLI::Option* const redact = verb->add_flag(
      "--redact", report.redact,
      "write a copy without host, user, command line, folders and environment, to send to others");
  verb->add_option("-o,--output", report.output,
                   "path of that copy; - for standard output (default: beside the report, with "
                   ".redacted before .json)")
      ->type_name("PATH")
      ->needs(redact);
  for (const char* const check :
       {"--fail-on-leak", "--fail-on-new", "--fail-on-growth", "--baseline", "--write-baseline",
        "--suppressions", "--print-suppressions"})
    redact->excludes(verb->get_option(check));
  return verb;
}

CLI::App* declare_diff(CLI::App& app, DiffVerb& diff) {
  CLI::App* verb = app.add_subcommand(
      "diff", "show which leaks are new, grown, smaller or gone between two reports");
  set_usage(*verb, "diff [OPTIONS] OLD NEW");
  verb->add_option("OLD", diff.before,
                   "the earlier report, or a folder with those of several processes (-: standard "
                   "input)")
      ->type_name("");
  verb->add_option("NEW", diff.now, "the later report, or folder of reports")->type_name("");
  add_top(*verb, diff.text.top);
  add_choice(*verb, diff.text);
  add_checks(*verb, diff.checks, true);
  add_suppressions(*verb, diff.suppressions);
  add_symbols(*verb, diff.symbol_folders);
  return verb;
}

CLI::App* declare_merge(CLI::App& app, MergeVerb& merge) {
  CLI::App* verb = app.add_subcommand("merge",
                                      "write one report of many processes or ranks, which report, "
                                      "diff and export (in its formats of "
                                      "leaks) read");
  set_usage(*verb, "merge [OPTIONS] FILE-OR-FOLDER...");
  verb->add_option("FILE", merge.files,
                   "reports (-: standard input), merged reports, or folders of reports")
      ->type_name("");
  add_file(*verb, "-o,--output", merge.output,
           "path of the merged report; - for standard output (default: standard output)");
  add_suppressions(*verb, merge.suppressions);
  add_symbols(*verb, merge.symbol_folders);
  return verb;
}

CLI::App* declare_export(CLI::App& app, ExportVerb& exported) {
  CLI::App* verb = app.add_subcommand("export", "write reports in a format of other programs");
  set_usage(*verb, "export --format NAME [OPTIONS] FILE-OR-FOLDER...");
  verb->add_option("FILE", exported.files, "reports (-: standard input), or folders of reports")
      ->type_name("");
  verb->add_option_function<std::string>(
          "--format",
          [&exported](Text text) {
            exported.format = export_format(text);
            if (exported.format == nullptr)
              throw CLI::ValidationError("--format takes " + names_of_formats(export_formats()) +
                                         ", not '" + text + "'");
          },
          "format: " + names_of_formats(export_formats()))
      ->type_name("NAME");
  add_suppressions(*verb, exported.suppressions);
  add_file(*verb, "--baseline", exported.baseline, "leaks in this list of known ones do not fail");
  verb->add_option("-o,--output", exported.output, "path of the file (default: standard output)")
      ->type_name("PATH");
  add_symbols(*verb, exported.symbol_folders);
  return verb;
}

pid_t pid_value(Text text) {
  const std::uint64_t value = count_value("PID", text);
  if (value == 0 || value > INT_MAX)
    throw CLI::ValidationError("PID is the number of a running process, not '" + text + "'");
  return static_cast<pid_t>(value);
}

CLI::App* declare_snapshot(CLI::App& app, SnapshotVerb& snapshot) {
  CLI::App* verb =
      app.add_subcommand("snapshot", "write a report of a live process, which is not disturbed");
  set_usage(*verb, "snapshot [OPTIONS] PID-OR-LEDGER");
  verb->add_option_function<std::string>(
          "PID",
          [&snapshot](Text text) {
            if (text.find('/') == text.npos)
              snapshot.pid = pid_value(text);
            else
              snapshot.ledger = text;
          },
          "a running process; or the path, with a slash, of its ledger, or of a folder with "
          "ledgers for a --format of other programs")
      ->type_name("");
  verb->add_option("-o,--output", snapshot.output,
                   "path of the file; - for standard output (default: the name of the report that "
                   "the process will write, with .snapshot before .json, in this folder; with a "
                   "--format, standard output)")
      ->type_name("PATH");
  std::string others;
  for (const ExportFormat& format : export_formats())
    if (snapshot_export_format(format.name) != nullptr)
      others += ", " + std::string(format.name) + " (" + std::string(format.meaning) + ")";
  const std::string names = names_of_formats(report_formats()) + others;
  verb->add_option_function<std::string>(
          "--format",
          [&snapshot, names](Text text) {
            snapshot.format = report_format(text);
            snapshot.exported = snapshot_export_format(text);
            if (snapshot.format == nullptr && snapshot.exported == nullptr)
              throw CLI::ValidationError("--format takes " + names + ", not '" + text + "'");
          },
          "write the report as " + names)
      ->type_name("NAME");
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
  verb->add_option_function<std::string>(
          "PID", [&top](Text text) { top.pid = pid_value(text); }, "a running process")
      ->type_name("");
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

}  // namespace

Verbs::Verbs(CLI::App& app)
    : run_app(declare_run(app, run)),
      report_app(declare_report(app, report)),
      diff_app(declare_diff(app, diff)),
      merge_app(declare_merge(app, merge)),
      export_app(declare_export(app, exported)),
      snapshot_app(declare_snapshot(app, snapshot)),
      recover_app(declare_recover(app, recover)),
      top_app(declare_top(app, top)),
      doctor_app(declare_doctor(app)),
      help_app(declare_help(app, topic)),
      version_app(declare_version(app)) {
  for (CLI::App* const verb : {run_app, report_app, diff_app, snapshot_app}) add_colours(*verb);
}

void Verbs::suit_output() {
  for (TextOptions* const text : {&report.text, &diff.text}) {
    text->colour = wants_colour(STDOUT_FILENO);
    text->columns = columns_for(STDOUT_FILENO);
    text->ascii = wants_ascii();
  }
}

CLI::App* Verbs::find(const std::string& name) const {
  const auto verb = std::ranges::find(all, name, [](auto* each) { return each->get_name(); });
  return verb == all.end() ? nullptr : *verb;
}

std::string Verbs::names() const {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "" : i + 1 < all.size() ? ", " : " and ") + all[i]->get_name();
  return text;
}

}  // namespace cuwarden
