// Names of reports in a folder in which other processes make reports of the same name.
#pragma once

#include <string>

namespace cuwarden {

// The name that rename_to_free_name() has given a file.
struct FreeName {
  int error = 0;  // errno of the failed renaming; 0: the file was renamed
  // Number before the ending of the name, such as 1 in "ci.1.json"; 0: none.
  unsigned number = 0;
  std::string name;  // new name of the renamed file, without a folder; meaningless after a failure
};
// Renames the file `from` in the folder to `wanted`, or, if that name is taken, to one with a free
// number before its ending ("ci.1.json"): the lowest one up to 16, otherwise a higher one, so that
// processes that end together find different ones. A name that is too long for the file system is
// shortened (fitting_name()). Never replaces a file. Fails with EEXIST if the first 100,000 numbers
// are taken. `folder`: descriptor of the folder. `wanted`: file name without a folder.
FreeName rename_to_free_name(int folder, const char* from, const std::string& wanted);

}  // namespace cuwarden
