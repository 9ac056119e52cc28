// Names of memory functions without a hook that were looked up before the first CUDA call: there is
// no ledger yet to count them in.
#pragma once

#include <cstddef>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"

namespace cuwarden::shim {

class EarlyLookups {
 public:
  // Stores a name. A name that does not fit is left out: a few are enough for the report's warning.
  void keep(const char* name) noexcept;
  // Counts the stored names in the ledger, and forgets them.
  void tell(ledger::Writer&) noexcept;

 private:
  static constexpr std::size_t limit = 32, name_limit = 64;
  FutexLock lock_;
  std::size_t used_ = 0;
  char names_[limit][name_limit] = {};
};

}  // namespace cuwarden::shim
