// The `cuwarden` command: reads the command line and calls the verb.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "reporters/quantities.hpp"
#include "tools/cuwarden/command_output.hpp"
#include "tools/cuwarden/verbs.hpp"

namespace cuwarden {
namespace {

constexpr int wrong_usage = 2;
constexpr std::array<std::string_view, 3> verbs{"run", "report", "doctor"};

int usage_error(const std::string& line) {
  print_error(line);
  return wrong_usage;
}

// Reads a size option; CLI11 turns what is thrown into its own error.
void read_size(const std::string& text, std::uint64_t& bytes) {
  const auto size = parse_size(text);
  if (!size) {
    throw CLI::ValidationError("'" + text +
                               "' is not a size: give for example 4096, 64MiB or 1.5GB");
  }
  bytes = *size;
}

int command_line(int count, char** arguments) {
  // What follows a lone `--` is a program's command line and none of our business.
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
  app.set_version_flag("--version", "cuwarden " CUWARDEN_VERSION);
  app.require_subcommand(1);

  RunVerb run;
  CLI::App* run_app = app.add_subcommand("run", "run a program under the shim, show its report");
  run_app->footer("Usage: cuwarden run [options] -- CMD...");
  run_app->prefix_command();
  run_app->add_option("--report", run.report, "report path (CUWARDEN_REPORT; %e %h %p %j %r)");
  run_app->add_option("--stack-depth", run.stack_depth,
                      "frames kept per allocation (CUWARDEN_STACK_DEPTH)");
  run_app->add_option("--log", run.log, "off, error, warn, info or debug (CUWARDEN_LOG)");
  run_app->add_option("--ledger-dir", run.ledger_dir,
                      "folder of the live ledger (CUWARDEN_LEDGER_DIR)");
  run_app->add_option_function<std::string>(
      "--simulate",
      [&](const std::string& text) { read_size(text, run.simulated_bytes.emplace()); },
      "run on a simulated GPU with SIZE of memory");

  ReportVerb report;
  report.text.colour = wants_colour(STDOUT_FILENO);
  CLI::App* report_app = app.add_subcommand("report", "show what a report says, for people");
  report_app->add_option("FILE", report.files, "reports")->required();
  const std::map<std::string, GroupBy> groupings{{"stack", GroupBy::stack},
                                                 {"module", GroupBy::module},
                                                 {"api", GroupBy::api},
                                                 {"kind", GroupBy::kind}};
  report_app->add_option_function<std::string>(
      "--by",
      [&](const std::string& text) {
        const auto grouping = groupings.find(text);
        if (grouping == groupings.end()) {
          throw CLI::ValidationError("--by takes stack, module, api or kind, not '" + text + "'");
        }
        report.text.by = grouping->second;
      },
      "sum leaks by stack (default), module, api or kind");
  report_app->add_option("--top", report.text.top, "groups to show; 0: all (default 10)");
  report_app->add_option_function<std::string>(
      "--min-bytes", [&](const std::string& text) { read_size(text, report.text.min_bytes); },
      "leave out smaller groups");
  report_app->add_option("--module", report.text.module,
                         "only leaks from modules whose path contains this");
  report_app->add_flag(
      "--fail-on-leak", report.fail_on_leak,
      "exit with 1 when there are leaks (that --module and --min-bytes let through)");

  CLI::App* doctor_app =
      app.add_subcommand("doctor", "say what the shim can see here, and how CMD reaches CUDA");
  doctor_app->footer("Usage: cuwarden doctor [-- CMD...]");
  doctor_app->prefix_command();

  if (count < 2) {
    print(STDERR_FILENO, app.help());
    return wrong_usage;
  }
  const std::string_view verb = arguments[1];
  if (!verb.starts_with('-') && std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) {
    return usage_error("no verb '" + std::string(verb) + "'; there are run, report and doctor");
  }
  try {
    app.parse(own_count, arguments);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return usage_error(text + "; see cuwarden " +
                       (verb.starts_with('-') ? "" : std::string(verb) + " ") + "--help");
  }

  if (report_app->parsed()) {
    if (separated) report.files.insert(report.files.end(), command.begin(), command.end());
    return report_verb(report);
  }
  const std::vector<std::string> rest = (run_app->parsed() ? run_app : doctor_app)->remaining();
  if (!rest.empty() && (separated || rest.front().starts_with('-'))) {
    return usage_error((rest.front().starts_with('-') ? "unknown option " : "unexpected ") +
                       rest.front() + "; see cuwarden " + std::string(verb) + " --help");
  }
  if (!separated) command = rest;
  if (doctor_app->parsed()) return doctor_verb(command);
  if (command.empty())
    return usage_error("run: no program; usage: cuwarden run [options] -- CMD...");
  run.command = std::move(command);
  return run_verb(run);
}

}  // namespace
}  // namespace cuwarden

int main(int count, char** arguments) {
  try {
    return cuwarden::command_line(count, arguments);
  } catch (const std::exception& error) {
    cuwarden::print_error(std::string("internal error: ") + error.what());
    return cuwarden::wrong_usage;
  }
}
