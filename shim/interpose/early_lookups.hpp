// Names of the driver's memory functions for which cuwarden has no hook and that the program looked
// up (dlsym) before its first CUDA call. The ledger, which counts such lookups, does not exist yet.
#pragma once

#include <cstddef>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

// Until the ledger is made, stores the names of driver functions that the program looked up and
// that have no hook: at most 32 names. Any thread may call the member functions.
class EarlyLookups {
 public:
  // Copies the name of a driver function without a hook; a name that is already stored is not
  // stored again. Ignores names of 64 or more characters. Once 32 names are stored, ignores all
  // further ones: a few are enough for the report's warning.
  void keep(const char* name) noexcept;
  // Enters each stored name into the ledger, as one lookup of a driver function without a hook. The
  // names stay stored, for the ledger of a forked child. To be called once for each ledger, when it
  // is made.
  void tell(ledger::Writer&) noexcept;

 private:
  // Most names that are stored, and the size of a name's row with the null byte at its end.
  static constexpr std::size_t limit = 32, name_limit = 64;
  // Guards `used_` and `names_`.
  FutexLock lock_;
  // Number of driver functions whose names are stored: the first rows of `names_`.
  std::size_t used_ = 0;
  // Stored names of driver functions without a hook, each with a null byte at its end. Rows from
  // the index `used_` on are empty.
  char names_[limit][name_limit] = {};
};

}  // namespace cuwarden::shim
