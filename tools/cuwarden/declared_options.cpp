#include "tools/cuwarden/declared_options.hpp"

#include <sys/stat.h>

#include <map>

#include "tools/cuwarden/output/command_output.hpp"
#include "tools/cuwarden/usage.hpp"

namespace cuwarden {

using Text = const std::string&;

CLI::Option* add_file(CLI::App& verb, const char* option, std::string& file, const char* help) {
  return verb
      .add_option_function<std::string>(
          option,
          [&file, option](Text text) {
            if (text.empty())
              throw CLI::ValidationError(std::string(option) + " takes a path, not ''");
            file = text;
          },
          help)
      ->type_name("FILE");
}

void add_checks(CLI::App& verb, CheckOptions& checks, bool is_diff) {
  verb.add_flag("--fail-on-leak{all}", checks.gate.on_leak,
                "fail (exit with 1) when there are leaks, or when a report is too incomplete to "
                "tell; memory that was live at a snapshot counts as leaked. With =lost, only "
                "memory to which no pointer is left counts")
      ->type_name("[=lost|all]")
      ->transform(CLI::Validator(numbered_failing_leaks, ""));
  CLI::Option* const on_new =
      verb.add_flag("--fail-on-new", checks.gate.on_new,
                    is_diff ? "fail when there are leaks in NEW that are not in OLD"
                            : "fail when there are leaks that are not in the baseline");
  CLI::Option* const on_growth = verb.add_flag(
      "--fail-on-growth", checks.gate.on_growth,
      is_diff ? "fail when leaks have more bytes or allocations in NEW than in OLD"
              : "fail when leaks have more bytes or allocations than in the baseline");
  if (!is_diff) {
    CLI::Option* const baseline = add_file(verb, "--baseline", checks.baseline,
                                           "compare the leaks with this list of known ones");
    on_new->needs(baseline);
    on_growth->needs(baseline);
  }
  add_file(verb, "--write-baseline", checks.new_baseline,
           "write the list of leaks to this file; - for standard output, and nothing else there");
}

void add_suppressions(CLI::App& verb, std::string& file) {
  add_file(verb, "--suppressions", file,
           "do not count leaks that this file's leak:PATTERN lines match");
}

void add_top(CLI::App& verb, std::size_t& top) {
  verb.add_option_function<std::string>(
          "--top", [&top](Text text) { top = count_value("--top", text); },
          "groups to show; 0: all (default 10)")
      ->type_name("N");
}

void add_choice(CLI::App& verb, TextOptions& text) {
  verb.add_option("--module", text.module,
                  "show and judge only leaks from modules whose path contains this")
      ->type_name("TEXT");
  verb.add_flag("--full-stacks", text.full_stacks,
                "show all frames of call stacks, also inside libraries, and whole names");
}

void add_colours(CLI::App& verb) {
  verb.add_option_function<std::string>(
          "--color",
          [](const std::string& text) {
            const std::map<std::string, Colours> wishes{{"auto", Colours::automatic},
                                                        {"always", Colours::always},
                                                        {"never", Colours::never}};
            const auto wish = wishes.find(text);
            if (wish == wishes.end())
              throw CLI::ValidationError("--color takes auto, always or never, not '" + text + "'");
            set_colours(wish->second);
          },
          "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->type_name("WHEN");
}

void add_symbols(CLI::App& verb, std::vector<std::string>& folders) {
  verb.add_option_function<std::vector<std::string>>(
          "--symbols",
          [&folders](const std::vector<std::string>& given) {
            for (const std::string& folder : given) {
              struct stat status {};
              if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
                throw CLI::ValidationError(
                    "--symbols takes a folder with files that ran, or their "
                    "debug files; '" +
                    folder + "' is none");
            }
            folders = given;
          },
          "find functions and lines in the debug files in this folder, by build id")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

}  // namespace cuwarden
