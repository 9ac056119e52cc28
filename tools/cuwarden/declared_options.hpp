// Options that several verbs of the command have.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "reporters/text/text_report.hpp"
#include "tools/cuwarden/reports/leak_checks.hpp"

namespace cuwarden {

// Declares an option that names a file, and refuses an empty name, as an unset variable of a script
// gives it. `option`: its names, such as "-o,--output". `file`: gets the value.
CLI::Option* add_file(CLI::App& verb, const char* option, std::string& file, const char* help);

// Declares the options by which a verb checks leaks: --fail-on-... and those of baselines.
// `checks`: gets their values. `is_diff`: true for `cuwarden diff`, which compares with its first
// report and has no --baseline.
void add_checks(CLI::App& verb, CheckOptions& checks, bool is_diff = false);

// Declares the option --suppressions, which sets `file`.
void add_suppressions(CLI::App& verb, std::string& file);

// Declares the option --top, which sets `top`.
void add_top(CLI::App& verb, std::size_t& top);

// Declares the options that choose leaks by module and the look of call stacks.
void add_choice(CLI::App& verb, TextOptions& text);

// Declares the option --color, which sets the user's wish for colours (set_colours()).
void add_colours(CLI::App& verb);

// Declares the option --symbols, which sets `folders`.
void add_symbols(CLI::App& verb, std::vector<std::string>& folders);

}  // namespace cuwarden
