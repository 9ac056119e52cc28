// Names that the ledger keeps: settings, environment variables, functions that have no hook.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

class Names {
 public:
  explicit Names(Storage& storage) noexcept : storage_(storage) {}

  // Counts a lookup of a memory function that has no hook.
  void count_unhooked_lookup(std::string_view name) noexcept;
  // Returns the number of different functions that were looked up and have no hook.
  std::uint64_t unhooked_lookups() const noexcept;
  void set_setting(std::string_view name, std::string_view value, bool from_environment) noexcept;
  void set_environment(std::string_view name, std::string_view value) noexcept;

 private:
  void store(RegionId, std::string_view name, std::string_view value,
             std::uint32_t source) noexcept;

  Storage& storage_;
  FutexLock lock_;
};

}  // namespace cuwarden::ledger
