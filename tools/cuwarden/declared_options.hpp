// Options that several verbs of the command have.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "reporters/text/text_report.hpp"
#include "tools/cuwarden/reports/leak_checks.hpp"

namespace cuwarden {

// Declares an option of the verb that takes the path of a file. Refuses an empty path as wrong
// usage: a script gives one if its variable is not set. `option`: names of the option, such as
// "-o,--output". `file`: gets the path, and must outlive the verb. `help`: text about the option
// for --help. Returns the option, which CLI11 owns.
CLI::Option* add_file(CLI::App& verb, const char* option, std::string& file, const char* help);

// Declares the options by which a verb checks leaks: --fail-on-leak, --fail-on-new,
// --fail-on-growth, --baseline and --write-baseline. `checks`: gets their values when the command
// line is parsed, and must outlive the verb. `is_diff`: true for `cuwarden diff`, which compares
// with its first report and has no --baseline.
void add_checks(CLI::App& verb, CheckOptions& checks, bool is_diff = false);

// Declares the option --suppressions of the verb. `file`: gets the value, the path of a file with
// patterns of leaks that do not count; must outlive the verb.
void add_suppressions(CLI::App& verb, std::string& file);

// Declares the option --top of the verb. `top`: gets the value, the most groups of leaks to show;
// 0: all. It must outlive the verb.
void add_top(CLI::App& verb, std::size_t& top);

// Declares the options --module, which chooses leaks by the module of their code, and
// --full-stacks, which shows all frames of call stacks and whole names. `text`: gets their values,
// and must outlive the verb.
void add_choice(CLI::App& verb, TextOptions& text);

// Declares the option --color, which sets the user's wish for colours (set_colours()).
void add_colours(CLI::App& verb);

// Declares the option --symbols of the verb, which may be given several times. Refuses a path that
// leads to no folder as wrong usage. `folders`: gets the values, paths of folders with debug files,
// and must outlive the verb.
void add_symbols(CLI::App& verb, std::vector<std::string>& folders);

}  // namespace cuwarden
