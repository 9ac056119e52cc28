// Reads a text file line by line, such as one of /proc that has no size.
#pragma once

#include <string>
#include <utility>

#include "runtime_hooks/core/files/open_file.hpp"

namespace cuwarden {

// Calls visit(line) for each line of the file at `path`; the text has no line feed at its end. A
// last line without a line feed is left out. Calls nothing if the file cannot be opened. `visit`
// takes a const std::string&. Throws std::bad_alloc, and whatever visit() throws.
template <class Visit>
void each_line_of(const char* path, Visit visit) {
  const Descriptor file = open_to_read(path);
  if (!file) return;
  std::string line;
  char text[4096];
  for (ssize_t length; (length = file.read_some(text)) > 0;)
    for (ssize_t i = 0; i < length; ++i) {
      if (text[i] != '\n') {
        line.push_back(text[i]);
        continue;
      }
      visit(std::as_const(line));
      line.clear();
    }
}

}  // namespace cuwarden
