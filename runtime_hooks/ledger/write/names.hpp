// Texts that the ledger keeps: cuwarden's settings, environment variables, and the names of CUDA
// functions that have no hook.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

namespace cuwarden::ledger {

// Stores copies of texts in the ledger. All threads may call the functions at any time.
class Names {
 public:
  // `storage`: the memory of the ledger that gets the texts; must outlive the object.
  explicit Names(Storage& storage) noexcept : storage_(storage) {}

  // Counts a lookup (dlsym, cuGetProcAddress) of the CUDA function `name`. The function handles
  // memory but has no hook in cuwarden, so its calls are not recorded.
  void count_unhooked_lookup(std::string_view name) noexcept;
  // Stores the value of the cuwarden setting `name`. Each call adds a row. `from_environment`: true
  // if an environment variable gave the value, false if it is the default.
  void set_setting(std::string_view name, std::string_view value, bool from_environment) noexcept;
  // Stores an environment variable of the process for the report's list of variables. Each call
  // adds a row.
  void set_environment(std::string_view name, std::string_view value) noexcept;

 private:
  // Adds a row to the table `RegionId`, which is that of settings or that of environment variables.
  // `source` (NamedValue::source): 1 if the value is from the environment, 0 if it is a default.
  // Adds reason_names_missing to the ledger if there is no room.
  void store(RegionId, std::string_view name, std::string_view value,
             std::uint32_t source) noexcept;

  Storage& storage_;  // the memory of the ledger, with its tables
  FutexLock lock_;    // held while rows of the tables of texts are looked for and added
  // True once the ledger had no room for the name of a function that was looked up.
  bool are_strings_full_ = false;
};

}  // namespace cuwarden::ledger
