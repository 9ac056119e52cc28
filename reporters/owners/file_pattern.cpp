#include "reporters/owners/file_pattern.hpp"

#include "reporters/owners/cuda_frames.hpp"
#include "reporters/words/paths.hpp"

namespace cuwarden {

bool matches_file(std::string_view path, std::string_view pattern) noexcept {
  if (pattern.find('/') != pattern.npos) return path.find(pattern) != path.npos;
  const std::string_view file = file_name(path);
  if (!pattern.ends_with('*'))
    return file == pattern || is_shared_library(path, pattern) ||
           (pattern.ends_with(".so") && file.starts_with(pattern));
  return file.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace cuwarden
