// cuwarden's messages to the user. They go through one private spdlog logger, which is never
// destroyed. It is in no registry of spdlog, so that the program's own use of spdlog is not
// affected.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "shim/support/settings.hpp"

namespace cuwarden::shim {

// Sets the lowest level of the messages that are written, and their target (a file or standard
// error), by CUWARDEN_LOG. If CUWARDEN_LOG includes warnings, says on standard error if that target
// cannot be used. Then writes the warnings that were logged before the first call, 2 KiB of them at
// most; other earlier messages are lost. To be called again in a forked child. If memory runs out,
// no later message is written.
void set_up_log(const Settings&) noexcept;

// Returns the text that the library fmt makes of a format with "{}" and its arguments. Called by
// formatted() alone, which checks the format when the program is compiled.
std::string format_arguments(fmt::string_view format, fmt::format_args);

// Returns the format's text with the arguments in place of its fields, such as "{}". The format is
// checked when the program is compiled. May throw std::bad_alloc. To be used instead of
// fmt::format(). Debian has no static library of fmt, so each file with fmt::format() would compile
// all of fmt.
template <class... Arguments>
std::string formatted(fmt::format_string<Arguments...> format, const Arguments&... arguments) {
  return format_arguments(format, fmt::make_format_args(arguments...));
}

// Writes one line to cuwarden's log as an error, with "cuwarden: " before it, if CUWARDEN_LOG
// includes errors. `line` has no line feed at its end. Before set_up_log(), drops the line. Later,
// drops the line if there is no memory for it, if it cannot be written, or if the target is a pipe
// that stays full for 100 ms. Never throws; keeps errno. In a thread that a seccomp filter
// confines, writes nothing.
void log_error(std::string_view line) noexcept;
// Writes one line to cuwarden's log as a warning, with "cuwarden: " before it, if CUWARDEN_LOG
// includes warnings. `line` has no line feed at its end. Before set_up_log(), keeps the line for
// that function to write, as long as such lines take 2 KiB at most; a line that does not fit is
// lost. Later, drops the line if there is no memory for it, if it cannot be written, or if the
// target is a pipe that stays full for 100 ms. Never throws; keeps errno. In a thread that a
// seccomp filter confines, writes nothing.
void log_warn(std::string_view line) noexcept;
// Writes one line to cuwarden's log as information, with "cuwarden: " before it, if CUWARDEN_LOG
// includes the level `info`. `line` has no line feed at its end. Before set_up_log(), drops the
// line. Later, drops the line if there is no memory for it, if it cannot be written, or if the
// target is a pipe that stays full for 100 ms. Never throws; keeps errno. In a thread that a
// seccomp filter confines, writes nothing.
void log_info(std::string_view line) noexcept;
// Writes one line to cuwarden's log as a debug message, with "cuwarden: " before it, if
// CUWARDEN_LOG includes the level `debug`. `line` has no line feed at its end. Before
// set_up_log(), drops the line. Later, drops the line if there is no memory for it, if it cannot
// be written, or if the target is a pipe that stays full for 100 ms. Never throws; keeps errno. In
// a thread that a seccomp filter confines, writes nothing.
void log_debug(std::string_view line) noexcept;

}  // namespace cuwarden::shim
