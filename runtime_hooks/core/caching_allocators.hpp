// Recognises libraries that keep memory and hand out parts of it, by the names of their files.
#pragma once

#include <string_view>

namespace cuwarden {

// True if the loaded object at `path` is PyTorch's allocator of device memory. That allocator takes
// segments from CUDA and hands out blocks of them. Only the path is looked at.
inline bool is_pytorch_allocator(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("libc10_cuda.");
}

// True if the loaded object at `path` is an allocator that caches memory and repeats refused
// requests: PyTorch's allocator of device memory, CuPy's pools or XLA's BFC. When CUDA refuses a
// request of it, it empties its cache and asks CUDA again. Only the path is looked at.
inline bool asks_again_when_refused(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* name : {"libc10_cuda", "xla_", "libjax"})
    if (file.starts_with(name)) return true;
  return path.find("/cupy/") != path.npos &&
         (file.starts_with("memory.") || file.starts_with("pinned_memory."));
}

// True if the loaded object at `path` is known to keep memory that it gets from CUDA, and to hand
// out parts of it. It need not repeat refused requests. Only the path is looked at.
inline bool is_caching_allocator(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const char* name : {"librmm", "libumpire", "libamrex", "libtensorflow", "libonnxruntime",
                           "libmxnet", "libpaddle"})
    if (file.starts_with(name)) return true;
  return asks_again_when_refused(path);
}

}  // namespace cuwarden
