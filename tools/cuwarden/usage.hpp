// What is said of a wrong command line: one line that names what is wrong, where, and what to do.
// CLI11's own messages are for the programmers who declare options.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace cuwarden {

// Shows a verb's usage as it was declared by set_usage(), and nothing twice.
void set_usage(CLI::App&, const std::string& usage);

// `verb`: the subcommand that was meant.
std::string usage_line(const CLI::ParseError&, const CLI::App& app, const std::string& verb);

// Parsers of option values; a bad one becomes a CLI::ValidationError with the option's name.
std::uint64_t size_value(const char* option, const std::string& text);
std::uint64_t count_value(const char* option, const std::string& text);

}  // namespace cuwarden
