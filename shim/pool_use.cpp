#include "shim/pool_use.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "shim/loaded_objects.hpp"

namespace cuwarden::shim {

families::PoolUse pool_use(PoolMode mode) noexcept {
  switch (mode) {
    case PoolMode::on:
      return families::PoolUse::from_start;
    case PoolMode::automatic:
      return families::PoolUse::when_slabs_lock;
    default:
      return families::PoolUse::never;
  }
}

namespace {

bool is_any_loaded(std::span<const std::string_view> stems) {
  return any_loaded_object([&](const LoadedObject& object) {
    return std::ranges::any_of(
        stems, [&](std::string_view stem) { return is_library(object.soname(), stem); });
  });
}

}  // namespace

bool shares_memory_with_processes() noexcept {
  constexpr std::string_view stems[] = {"libmpi.so", "libmpich.so", "libucp.so", "libuct.so",
                                        "libnvshmem_host.so"};
  return is_any_loaded(stems);
}

std::uint64_t mesh_pause_ns(const Settings& settings) noexcept {
  return settings.meshes && pool_use(settings.pool) != families::PoolUse::never
             ? settings.mesh_pause_ns
             : 0;
}

bool reaches_memory_unseen() noexcept {
  constexpr std::string_view stems[] = {
      "libibverbs.so",       "libcufile.so", "libgdrapi.so",  "libnvcuvid.so",
      "libnvidia-encode.so", "libfabric.so", "libnvoptix.so", "libnvidia-opticalflow.so"};
  return shares_memory_with_processes() || is_any_loaded(stems);
}

}  // namespace cuwarden::shim
