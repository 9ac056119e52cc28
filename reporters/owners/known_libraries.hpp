// Finds the known library to which the code of a frame belongs. All other code counts as the
// program's own. known_libraries.def lists the libraries.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// Tells for a frame of a call stack to which known library its code belongs, such as PyTorch. All
// other code counts as the program's own.
class KnownLibraries {
 public:
  // `further`: value of the setting CUWARDEN_LIBRARIES: patterns (matches_file()), with commas
  // between them, of further files whose code is not the program's own. A text that the setting
  // does not accept counts as empty.
  explicit KnownLibraries(std::string_view further = {});
  KnownLibraries(const KnownLibraries&) = delete;
  KnownLibraries& operator=(const KnownLibraries&) = delete;

  // Returns the name of the library to which the frame's code belongs, such as "PyTorch", "CUDA",
  // "system libraries", or "Python" for the interpreter and its standard library. For code that a
  // pattern of CUWARDEN_LIBRARIES matches, returns the pattern. Empty: the code is the program's
  // own, or nothing is known of it. The result lives as long as this object; the frame's texts must
  // do so, too.
  std::string_view library_of(const NamedFrame&);

 private:
  // Returns the name of the library to which the file belongs; empty: the program's own file.
  std::string_view library_of_file(std::string_view path);

  std::vector<std::string> further_;  // patterns of CUWARDEN_LIBRARIES
  // Results of library_of_file(), by path.
  std::unordered_map<std::string_view, std::string_view> known_;
};

// Returns the name of a library for users, such as "PyTorch"; if the library is not known, the name
// of its file. `path`: path of a loaded program or library.
std::string library_name(std::string_view path);

}  // namespace cuwarden
