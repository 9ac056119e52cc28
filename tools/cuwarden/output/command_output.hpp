// Writes the output of the `cuwarden` command to standard output and standard error. An error
// message is one line. Colour appears only on a terminal. Names and texts from programs, which may
// contain control sequences, cannot act on the terminal.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Prepares descriptors and signals for output; to be called once, at the start of the command.
// Afterwards a write to a pipe without a reader, or beyond a limit of the file size, fails with an
// errno instead of ending the command by a signal. Each closed descriptor of 0 to 2 becomes
// occupied, so that no file opened later gets the command's output. Programs that the command
// starts see signals and descriptors as they were.
void prepare_output();

// Writes "cuwarden: ", the line and a line feed to standard error. Line feeds and control
// characters in `line` become question marks.
void print_error(std::string_view line);
// Ends the command where memory has run out: writes an error line, allocates nothing, and returns
// the exit status for it. This is 2, or the status that status_without_memory() was given.
int no_memory();
// Sets the exit status that no_memory() returns.
void status_without_memory(int status);
// Writes the line and a line feed to the descriptor. Line feeds and control characters in `line`
// become question marks.
void print_line(int descriptor, std::string_view line);
// Returns `name`, or two single quotes ('') if it is empty, so that a line that begins with the
// name does not begin with a gap. For names that come from files.
std::string name_in_a_line(const std::string& name);
// Writes a text of several lines to the descriptor. The colour sequences that cuwarden itself uses
// (printable.hpp) stay if wants_colour() is true for the descriptor. All other control characters
// but line feeds become question marks. Names from programs must have passed printable() before
// they are put into the text, since a line feed in a name would begin a line.
void print(int descriptor, std::string_view text);
// True if output to the descriptor should have colours: it is a terminal other than TERM=dumb, and
// NO_COLOR is unset or empty.
bool wants_colour(int descriptor);

// Stores that a write to standard output failed, for finish_output(); the first error counts.
// `error`: the errno. To be called by code that writes to standard output by itself.
void output_failed(int error);
// Returns the command's exit status; to be called at its end. If a write to standard output failed,
// writes an error line and returns 2; otherwise returns `status`. A pipe whose reader has gone
// (EPIPE) is no failure, since the reader has read all that it wanted.
int finish_output(int status);

// Function that restores the terminal, to be called in a signal handler before the signal ends the
// command. Null while the terminal is as it was at the start.
extern void (*before_a_crash)();

}  // namespace cuwarden
