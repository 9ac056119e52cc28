#include "reporters/owners/library_reserves.hpp"

#include <algorithm>
#include <array>

#include "reporters/owners/cuda_frames.hpp"
#include "reporters/owners/file_pattern.hpp"

namespace cuwarden {
namespace {

constexpr std::array reserves = {
#define RESERVE(name, pattern, kind, use_of_it, content, call, setting) \
  LibraryReserve{.library = name,                                       \
                 .file = pattern,                                       \
                 .memory = LibraryReserve::Memory::kind,                \
                 .use = LibraryReserve::Use::use_of_it,                 \
                 .holds = content,                                      \
                 .gives_back = call,                                    \
                 .limited_by = setting},
#include "reporters/owners/library_reserves.def"
#undef RESERVE
};
static_assert(std::ranges::none_of(reserves, [](const LibraryReserve& reserve) {
  return reserve.gives_back.empty() && reserve.limited_by.empty();
}));

}  // namespace

const LibraryReserve* reserve_of(std::string_view asker, Kind kind, DeviceOrdinal device) noexcept {
  if (kind == Kind::imported || !is_asked_for(kind)) return nullptr;
  const auto memory =
      device == no_device ? LibraryReserve::Memory::host : LibraryReserve::Memory::device;
  const auto* const found = std::ranges::find_if(reserves, [&](const LibraryReserve& reserve) {
    return reserve.memory == memory && matches_file(asker, reserve.file);
  });
  return found == reserves.end() ? nullptr : found;
}

bool is_between_cuda_and_asker(std::string_view module_path) noexcept {
  return is_cuda_library(module_path) || module_path.find("/cupy_backends/") != module_path.npos;
}

}  // namespace cuwarden
