#include "reporters/owners/system_libraries.hpp"

#include <algorithm>
#include <array>

#include "reporters/owners/cuda_frames.hpp"
#include "reporters/words/paths.hpp"

namespace cuwarden {
namespace {

constexpr std::array system_names = {
    std::string_view{"ld-linux-x86-64"}, std::string_view{"libBrokenLocale"},
    std::string_view{"libanl"},          std::string_view{"libc"},
    std::string_view{"libc++"},          std::string_view{"libc++abi"},
    std::string_view{"libdl"},           std::string_view{"libgcc_s"},
    std::string_view{"libgomp"},         std::string_view{"libm"},
    std::string_view{"libmvec"},         std::string_view{"libnsl"},
    std::string_view{"libpthread"},      std::string_view{"libresolv"},
    std::string_view{"librt"},           std::string_view{"libstdc++"},
    std::string_view{"libthread_db"},    std::string_view{"libutil"},
    std::string_view{"linux-vdso"},
};

}  // namespace

bool is_system_library(std::string_view module_path) noexcept {
  if (is_cuda_library(module_path)) return true;
  const std::string_view file = file_name(module_path);
  // "libc.so.6", and "libc-2.28.so" as it was named before glibc 2.34.
  return std::ranges::any_of(system_names, [&](std::string_view name) {
    if (!file.starts_with(name)) return false;
    const std::string_view rest = file.substr(name.size());
    return rest.starts_with(".so") ||
           (rest.starts_with("-2.") && rest.find(".so") != std::string_view::npos);
  });
}

}  // namespace cuwarden
