// All output of the command. An error is one line, colour appears only on a terminal, and nothing
// foreign can act on the terminal. No other file writes to descriptors 1 and 2.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// To be called once, at the start of the command. Afterwards a write returns an error, instead of
// ending the command, if its reader has gone or a file-size limit is reached. Closed descriptors of
// 0 to 2 are occupied, so that no file opened later receives messages. Child processes see signals
// and descriptors as they were.
void prepare_output();

// Writes "cuwarden: " and the line to stderr. Line feeds and letters that act on a terminal become
// question marks.
void print_error(std::string_view line);
// Writes the line, with the letters replaced as in print_error().
void print_line(int descriptor, std::string_view line);
// Returns a foreign name that is to begin a line: '' if the name is empty.
std::string name_in_a_line(const std::string& name);
// Writes a text of many lines, in the colours of printable.hpp if wants_colour() returns true.
// Foreign names in the text must have passed printable(), since a line feed in one would begin a
// line.
void print(int descriptor, std::string_view text);
bool wants_colour(int descriptor);

// Records that standard output could not be written, for finish_output().
void output_failed(int error);
// Returns the command's exit status: `status`, or 2 after an error line if standard output could
// not be written. A reader that has gone is no error: it has read all that it wanted.
int finish_output(int status);

// Restores the terminal. Called before a signal ends the command; null if there is nothing to do.
extern void (*before_a_crash)();

}  // namespace cuwarden
