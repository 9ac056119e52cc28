// Messages about a wrong command line: one line that says what is wrong, in which option, and what
// to do. CLI11's own messages are written for the programmers who declare options.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace cuwarden {

// Sets the usage line of a verb's --help, in place of the one that CLI11 makes.
void set_usage(CLI::App&, const std::string& usage);

// Returns the error line for a wrong command line. `verb`: the verb that was meant.
std::string usage_line(const CLI::ParseError&, const CLI::App& app, const std::string& verb);

// Parse an option's value: a number of bytes, or a count. A bad value throws a CLI::ValidationError
// with the option's name.
std::uint64_t size_value(const char* option, const std::string& text);
std::uint64_t count_value(const char* option, const std::string& text);

}  // namespace cuwarden
