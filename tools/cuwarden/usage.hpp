// Messages about a wrong command line, in one line each: the option, what is wrong with it, and
// what to do. They replace the messages of CLI11, the library that parses the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace cuwarden {

// Sets the line "Usage: cuwarden USAGE" in the --help text of a verb (the command's first word,
// such as `run`) or of the whole command. `App`: parser of the verb or of the whole command line in
// CLI11, the library that parses command lines. `usage`: text for USAGE, such as
// "doctor [-- CMD...]".
void set_usage(CLI::App&, const std::string& usage);

// Returns the message for the user about a wrong command line, in one line without a line feed.
// `ParseError`: the exception by which CLI11, the library that parses command lines, refused it.
// `app`: CLI11's parser of the whole command line. `verb`: the verb that the user gave, such as
// "run".
std::string usage_line(const CLI::ParseError&, const CLI::App& app, const std::string& verb);

// Returns the number of bytes that a text such as "4096", "64MiB" or "1.5GB" means. Throws a
// CLI::ValidationError, with the option's name in its message, for any other text. `option`: name
// of the option, such as "--min-bytes".
std::uint64_t size_value(const char* option, const std::string& text);
// Returns the number that a text of decimal digits means. Throws a CLI::ValidationError, with the
// option's name in its message, for any other text and for numbers of 2^64 or more. `option`: name
// of the option, such as "--top".
std::uint64_t count_value(const char* option, const std::string& text);
// Replaces a value of the option --fail-on-leak, "lost" or "all", by the number of that
// FailingLeaks in decimal digits. CLI11 reads enumerations in this form. Returns an empty text, or,
// for any other value, an error message for the user.
std::string numbered_failing_leaks(std::string& text);

}  // namespace cuwarden
