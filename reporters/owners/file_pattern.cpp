#include "reporters/owners/file_pattern.hpp"

#include "reporters/owners/cuda_frames.hpp"
#include "reporters/words/paths.hpp"

namespace cuwarden {

bool matches_file(std::string_view path, std::string_view pattern) noexcept {
  if (pattern.find('/') != pattern.npos) return path.find(pattern) != path.npos;
  if (!pattern.ends_with('*')) return is_shared_library(path, pattern);
  return file_name(path).starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace cuwarden
