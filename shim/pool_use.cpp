#include "shim/pool_use.hpp"

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

bool shares_memory_with_processes() noexcept {
  constexpr std::string_view stems[] = {"libmpi.so", "libmpich.so", "libucp.so", "libuct.so",
                                        "libnvshmem_host.so"};
  return any_loaded_object([&](const LoadedObject& object) {
    const std::string_view name = object.soname();
    for (const std::string_view stem : stems)
      if (is_library(name, stem)) return true;
    return false;
  });
}

}  // namespace cuwarden::shim
