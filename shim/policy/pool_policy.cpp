#include "shim/policy/pool_policy.hpp"

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

std::uint64_t mesh_pause_ns(const Settings& settings) noexcept {
  return settings.mesh.moves && pool_use(settings.pool) != serving::PoolUse::never
             ? settings.mesh_pause_ns
             : 0;
}

}  // namespace cuwarden::shim
