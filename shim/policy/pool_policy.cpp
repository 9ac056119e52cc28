#include "shim/policy/pool_policy.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {

serving::PoolUse pool_use(PoolMode mode) noexcept {
  switch (mode) {
    case PoolMode::on:
      return serving::PoolUse::from_start;
    case PoolMode::automatic:
      return serving::PoolUse::when_slabs_lock;
    default:
      return serving::PoolUse::never;
  }
}

namespace {

// MPI, UCX, NVSHMEM.
constexpr std::string_view that_share[] = {"libmpi.so", "libmpich.so", "libucp.so", "libuct.so",
                                           "libnvshmem_host.so"};
constexpr std::string_view that_reach[] = {
    "libibverbs.so",       "libcufile.so", "libgdrapi.so",  "libnvcuvid.so",
    "libnvidia-encode.so", "libfabric.so", "libnvoptix.so", "libnvidia-opticalflow.so"};

bool is_one_of(const LoadedObject& object, std::span<const std::string_view> stems) {
  return std::ranges::any_of(
      stems, [&](std::string_view stem) { return is_library(object.soname(), stem); });
}

}  // namespace

bool shares_memory_with_processes() noexcept {
  return any_loaded_object(
      [](const LoadedObject& object) { return is_one_of(object, that_share); });
}

std::uint64_t mesh_pause_ns(const Settings& settings) noexcept {
  return settings.meshes && pool_use(settings.pool) != serving::PoolUse::never
             ? settings.mesh_pause_ns
             : 0;
}

bool reaches_memory_unseen() noexcept {
  return any_loaded_object([](const LoadedObject& object) {
    return is_one_of(object, that_share) || is_one_of(object, that_reach);
  });
}

std::string libraries_that_reach_memory() {
  // Under the loader's lock nothing is allocated.
  char names[512];
  std::size_t length = 0;
  any_loaded_object([&](const LoadedObject& object) {
    if (!is_one_of(object, that_share) && !is_one_of(object, that_reach)) return false;
    for (const std::string_view part :
         {length == 0 ? std::string_view() : std::string_view(", "), object.soname()})
      length += part.copy(names + length, sizeof names - length);
    return false;
  });
  return {names, length};
}

}  // namespace cuwarden::shim
