#include "shim/interpose/early_lookups.hpp"

#include <algorithm>
#include <cstring>

#include "runtime_hooks/ledger/write/names.hpp"

namespace cuwarden::shim {

void EarlyLookups::keep(const char* name) noexcept {
  const std::size_t length = std::strlen(name);
  if (length >= name_limit) return;
  const Locked locked(lock_);
  if (!locked || used_ == limit) return;
  const auto known = [name](const char* other) { return std::strcmp(other, name) == 0; };
  if (std::any_of(names_, names_ + used_, known)) return;
  std::memcpy(names_[used_++], name, length + 1);
}

void EarlyLookups::tell(ledger::Writer& ledger) noexcept {
  const Locked locked(lock_);
  for (std::size_t i = 0; locked && i < used_; ++i) ledger.names.count_unhooked_lookup(names_[i]);
}

}  // namespace cuwarden::shim
