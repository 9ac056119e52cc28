#include "reporters/owners/cuda_frames.hpp"

#include <algorithm>
#include <array>

#include "reporters/words/paths.hpp"

namespace cuwarden {
namespace {

constexpr std::array allocating_entries = {
    std::string_view{"cudaMalloc"},
    std::string_view{"cudaMallocHost"},
    std::string_view{"cudaMallocManaged"},
    std::string_view{"cudaMallocPitch"},
    std::string_view{"cudaMalloc3D"},
    std::string_view{"cudaMallocArray"},
    std::string_view{"cudaMalloc3DArray"},
    std::string_view{"cudaMallocMipmappedArray"},
    std::string_view{"cudaMallocAsync"},
    std::string_view{"cudaMallocFromPoolAsync"},
    std::string_view{"cudaHostAlloc"},
    std::string_view{"cudaHostRegister"},
    std::string_view{"cudaIpcOpenMemHandle"},
    std::string_view{"cudaMemPoolImportPointer"},
    std::string_view{"cudaImportExternalMemory"},
    std::string_view{"cudaExternalMemoryGetMappedBuffer"},
    std::string_view{"cudaExternalMemoryGetMappedMipmappedArray"},
    std::string_view{"cudaGraphicsMapResources"},
    std::string_view{"cudaGraphInstantiate"},
    std::string_view{"cudaGraphInstantiateWithFlags"},
    std::string_view{"cudaGraphInstantiateWithParams"},
    std::string_view{"cudaGraphLaunch"},
    std::string_view{"cudaGraphUpload"},
};

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char letter) { return letter >= '0' && letter <= '9'; });
}

std::string_view without_suffixes(std::string_view name) noexcept {
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  const auto version = name.rfind("_v");
  if (version != name.npos && is_digits(name.substr(version + 2))) name = name.substr(0, version);
  return name;
}

}  // namespace

bool is_shared_library(std::string_view module_path, std::string_view name) noexcept {
  const std::string_view file = file_name(module_path);
  if (!file.starts_with(name)) return false;
  const std::string_view rest = file.substr(name.size());
  return rest.starts_with(".so") || (rest.starts_with("-") && rest.find(".so") != rest.npos);
}

bool is_shared_runtime(std::string_view module_path) noexcept {
  return is_shared_library(module_path, "libcudart");
}

bool is_cuda_library(std::string_view module_path) noexcept {
  return is_shared_runtime(module_path) || is_shared_library(module_path, "libcuda") ||
         is_shared_library(module_path, "libcuwarden") ||
         file_name(module_path).starts_with("libnvidia-");
}

std::string_view runtime_entry(std::string_view function) noexcept {
  const std::string_view name = without_suffixes(function);
  return std::find(allocating_entries.begin(), allocating_entries.end(), name) ==
                 allocating_entries.end()
             ? std::string_view{}
             : name;
}

bool is_runtime_internal(std::string_view function) noexcept {
  return function.starts_with("cudart::") || function.starts_with("__cudart") ||
         function.starts_with("libcudart_static_") || !runtime_entry(function).empty();
}

bool is_cuda_header(std::string_view path) noexcept {
  constexpr std::array names = {std::string_view{"cuda.h"}, std::string_view{"cuda_runtime.h"},
                                std::string_view{"cuda_runtime_api.h"}};
  // The toolkit's own folder, that of a wheel or a conda package, and those of CCCL's libraries.
  constexpr std::array folders = {std::string_view{"/usr/local/cuda/include/"},
                                  std::string_view{"/targets/x86_64-linux/include/"},
                                  std::string_view{"/nvidia/cuda_runtime/"},
                                  std::string_view{"/nvidia/cu13/include/"},
                                  std::string_view{"/include/cccl/"},
                                  std::string_view{"/include/thrust/"},
                                  std::string_view{"/include/cub/"},
                                  std::string_view{"/include/cuda/std/"},
                                  std::string_view{"/include/cuda/__"},
                                  std::string_view{"/thrust/thrust/"},
                                  std::string_view{"/cub/cub/"},
                                  std::string_view{"/libcudacxx/include/"},
                                  std::string_view{"/include/cooperative_groups/"}};
  const auto is_in = [&](std::string_view folder) { return path.find(folder) != path.npos; };
  if (std::ranges::find(names, file_name(path)) != names.end() ||
      std::ranges::any_of(folders, is_in))
    return true;
  // "/opt/cuda-13.0/include/x.h"
  const std::size_t version = path.find("/cuda-");
  if (version == path.npos) return false;
  const std::string_view rest = path.substr(version + 6);
  const std::size_t end = rest.find('/');
  return end != rest.npos && !rest.empty() && is_digits(rest.substr(0, 1)) &&
         rest.substr(end).starts_with("/include/");
}

bool is_cuda_frame(std::string_view module_path, std::string_view function,
                   std::string_view source_file) noexcept {
  if (is_cuda_library(module_path) || is_runtime_internal(function)) return true;
  if (!source_file.empty()) return is_cuda_header(source_file);
  // "cudaError cudaMalloc<float>(float**, unsigned long)"
  constexpr std::string_view result = "cudaError ";
  if (!function.starts_with(result)) return false;
  const std::string_view name = function.substr(result.size());
  const std::size_t end = name.find_first_of("<(");
  return end != name.npos && name[end] == '<' && !runtime_entry(name.substr(0, end)).empty();
}

bool is_driver_api(std::string_view name) noexcept {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
}

}  // namespace cuwarden
