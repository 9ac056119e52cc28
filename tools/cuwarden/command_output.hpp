// What the command itself says: one line an error, colour only where a person reads it.
#pragma once

#include <string>

namespace cuwarden {

void print_error(const std::string& line);  // "cuwarden: …" on stderr
void print(int descriptor, const std::string& text);
bool wants_colour(int descriptor);

// What puts the terminal right before a signal that cannot be survived ends the command; may be
// null.
extern void (*before_a_crash)();

}  // namespace cuwarden
