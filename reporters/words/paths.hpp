// Parts of the paths of files.
#pragma once

#include <cstddef>
#include <string_view>

namespace cuwarden {

// Returns the part of the path behind its last slash; the whole path if it has no slash.
constexpr std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

// Returns the end of a path as people read it: the file with one folder, such as
// "samples/churn.cpp". The path may have no folder.
constexpr std::string_view with_one_folder(std::string_view path) noexcept {
  const std::size_t folders = path.size() - file_name(path).size();
  return folders == 0 ? path : path.substr(path.substr(0, folders - 1).rfind('/') + 1);
}

// Returns the folder of the file at the path, with a slash at its end; "./" if the path has none.
constexpr std::string_view folder_of(std::string_view path) noexcept {
  const std::string_view folder = path.substr(0, path.size() - file_name(path).size());
  return folder.empty() ? "./" : folder;
}

}  // namespace cuwarden
