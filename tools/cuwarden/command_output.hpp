// Everything that the command says goes through here: one line an error, colour only where a person
// reads it, nothing that acts on the terminal. Descriptors 1 and 2 are written to nowhere else.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Once, at the start of the command. A reader that goes away, and a limit on file sizes, become
// errors of a write instead of the command's end; its children see both as they were. Descriptors
// 0 to 2 that are closed are taken, so that no file which is opened later gets their messages;
// children see them closed.
void prepare_output();

// One line. Letters that act on a terminal become question marks; so do line feeds.
void print_error(std::string_view line);  // "cuwarden: …" on stderr
void print_line(int descriptor, std::string_view line);
// A name from outside that begins a line: '' for an empty one.
std::string name_in_a_line(const std::string& name);
// A text of many lines, with the colours of printable.hpp where wants_colour() allows them. Names
// from outside have passed printable(): a line feed in them would begin a line.
void print(int descriptor, std::string_view text);
bool wants_colour(int descriptor);

// Records that standard output could not be written, for finish_output().
void output_failed(int error);
// The exit status: the verb's own, or 2 after an error line where standard output could not be
// written. A reader that went away has had enough: that is no error.
int finish_output(int status);

// Puts the terminal right before a signal that cannot be survived ends the command; may be null.
extern void (*before_a_crash)();

}  // namespace cuwarden
