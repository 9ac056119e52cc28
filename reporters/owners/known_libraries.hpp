// Tells to which known library the code of a frame belongs. All other code counts as the program's
// own. known_libraries.def lists the libraries.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// The libraries whose code is not the program's own.
class KnownLibraries {
 public:
  // `further`: value of CUWARDEN_LIBRARIES, patterns (matches_file()) with commas between them, of
  // files with code that is not the program's own either. A text that the setting does not accept
  // counts as empty.
  explicit KnownLibraries(std::string_view further = {});
  KnownLibraries(const KnownLibraries&) = delete;
  KnownLibraries& operator=(const KnownLibraries&) = delete;

  // Returns the name of the library to which the frame's code belongs, such as "PyTorch", "Python"
  // for the interpreter and its standard library, "CUDA" and "system libraries". Empty: the code is
  // the program's own, or nothing is known of it. For code that a pattern of CUWARDEN_LIBRARIES
  // matches, returns the pattern. The result lives as long as this object; the frame's texts must
  // do so, too.
  std::string_view library_of(const NamedFrame&);

 private:
  // Returns the name of the library whose file this is; empty if it is none.
  std::string_view library_of_file(std::string_view path);

  std::vector<std::string> further_;  // the patterns of CUWARDEN_LIBRARIES
  // Names of the libraries of files that were looked up, by path; empty: the program's own file.
  std::unordered_map<std::string_view, std::string_view> known_;
};

// Returns the name of the library for users, such as "PyTorch"; the name of its file if the library
// is not known. `path`: the path of a loaded object.
std::string library_name(std::string_view path);

}  // namespace cuwarden
