// Words for a process in sentences for the user.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"

namespace cuwarden {

// Returns a text such as "pid 17 (python3, user alice)". `program`: path or name of the program,
// empty if unknown. `user`: name of the process's user, empty if unknown. Unknown parts are left
// out. Characters that act on a terminal are replaced, because other users choose these names.
// redact() searches for texts of this form.
inline std::string process_words(std::uint64_t pid, std::string_view program,
                                 std::string_view user) {
  std::string words = "pid " + std::to_string(pid);
  const std::string_view name = file_name(program);
  if (name.empty() && user.empty()) return words;
  words += " (";
  words += name;
  if (!user.empty()) {
    words += name.empty() ? "user " : ", user ";
    words += user;
  }
  return printable(words + ")");
}

}  // namespace cuwarden
