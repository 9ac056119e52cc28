// Libraries that are known to keep device memory and to hand out parts of it, by their files'
// names.
#pragma once

#include <string_view>

namespace cuwarden {

// Those that also empty their cache and ask again when they are refused: PyTorch's, CuPy's pool,
// XLA's BFC.
inline bool asks_again_when_refused(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* name : {"libc10_cuda", "xla_", "libjax"})
    if (file.starts_with(name)) return true;
  return path.find("/cupy/") != path.npos && file.starts_with("memory.");
}

inline bool is_caching_allocator(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* name : {"librmm", "libumpire", "libamrex", "libtensorflow", "libonnxruntime",
                           "libmxnet", "libpaddle"})
    if (file.starts_with(name)) return true;
  return asks_again_when_refused(path);
}

}  // namespace cuwarden
