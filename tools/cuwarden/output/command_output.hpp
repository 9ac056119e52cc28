// Writes the output of the `cuwarden` command to standard output and standard error. An error
// message is one line. Colour appears only on a terminal. Names and texts from programs, which may
// contain control sequences, cannot act on the terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cuwarden {

// True if the path of an output stands for standard output: it is empty, "-" or "/dev/stdout".
constexpr bool is_standard_output(std::string_view path) {
  return path.empty() || path == "-" || path == "/dev/stdout";
}

// Prepares signals and descriptors for output. Afterwards, a write to a pipe without a reader, or
// beyond the limit of file sizes, fails with an errno; no signal ends the command. If one of the
// descriptors 0 to 2 is closed, opens a file without access there, so that no file opened later
// gets the command's output. Programs that the command starts get signals and descriptors as they
// were before this call. Called once, at the start of the command.
void prepare_output();

// Writes "cuwarden: ", the line and a line feed to standard error. Line feeds, control characters
// and invalid UTF-8 in `line` become question marks.
void print_error(std::string_view line);
// Writes an error line which says that memory has run out, without allocating memory. Returns the
// exit status with which the caller must end the command: 2, or the status that
// status_without_memory() has set.
int no_memory();
// Sets the exit status that no_memory() returns. Without a call, the status is 2.
void status_without_memory(int status);
// Writes `line` and a line feed to the descriptor. Line feeds, control characters and invalid UTF-8
// in `line` become question marks. A failed write is ignored, except on standard output: then
// finish_output() returns a failure.
void print_line(int descriptor, std::string_view line);
// Returns `name`, or two single quotes ('') if it is empty, so that an empty name can be seen in a
// line.
std::string name_in_a_line(const std::string& name);
// Writes a text of several lines to the descriptor. Line feeds stay, and the colour sequences that
// cuwarden itself uses (printable.hpp) stay if wants_colour() is true for the descriptor. All other
// control characters become question marks. Names from programs must have passed printable() before
// they are put into the text, since a line feed in a name would begin a line. A failed write is
// ignored, except on standard output: then finish_output() returns a failure.
void print(int descriptor, std::string_view text);
// The user's wish for colours in the command's output. automatic: colours appear on terminals only.
enum class Colours : std::uint8_t { automatic, always, never };
// Sets the user's wish for colours, which wants_colour() heeds. Without a call, the wish is
// Colours::automatic.
void set_colours(Colours);
// True if output to the descriptor should have colours. Colours::always and Colours::never decide
// alone (set_colours()). With Colours::automatic, the descriptor must be a terminal, TERM must not
// be "dumb", and NO_COLOR must be unset or empty.
bool wants_colour(int descriptor);
// Returns the number of columns into which a text for the descriptor should fit; 0: any number. The
// variable COLUMNS decides if its value is from 20 to 2^20. Otherwise, a terminal has its own
// width, but at least 60 and at most 200 columns. A regular file has 100. A pipe, another device or
// a terminal of unknown width has 0, since programs that read lines expect whole ones.
std::size_t columns_for(int descriptor);
// True if output should have ASCII characters only, because the user's locale is none of UTF-8. The
// locale is the first of LC_ALL, LC_CTYPE and LANG that is not empty. False if all are unset or
// empty.
bool wants_ascii();

// Stores that a write to standard output failed, so that finish_output() returns a failure; only
// the first error is kept. `error`: the errno. Called by code that writes to standard output
// without print() or print_line().
void output_failed(int error);
// Returns the exit status with which the command must end. If a write to standard output has
// failed, writes an error line and returns 2; otherwise returns `status`. A pipe without a reader
// (EPIPE) is no failure, since the reader has read all that it wanted. Called at the end of the
// command.
int finish_output(int status);

// Function that restores the terminal; null until the command changes the terminal. A signal
// handler calls it before the signal ends the command.
extern void (*before_a_crash)();

}  // namespace cuwarden
