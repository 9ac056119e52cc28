#include "runtime_hooks/ledger/write/names.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {

void Names::count_unhooked_lookup(std::string_view name) noexcept {
  NamedCount* const rows = storage_.rows<NamedCount>(RegionId::unhooked_lookups);
  const char* const strings = storage_.rows<char>(RegionId::strings);
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  const std::uint64_t used = storage_.used(RegionId::unhooked_lookups);
  for (std::uint64_t i = 1; i < used; ++i) {  // row 0 is reserved
    if (name == std::string_view(strings + rows[i].name.offset, rows[i].name.length)) {
      rows[i].count.fetch_add(1, relaxed);
      return;
    }
  }
  // A row whose name could not be stored is not found again. Once there was no room for one name,
  // no further names get rows.
  const std::uint64_t row =
      are_strings_full_ ? 0 : storage_.allocate(RegionId::unhooked_lookups, 1);
  if (row == 0) return storage_.add_reason(reason_names_missing);
  rows[row].name = storage_.store(name);
  are_strings_full_ = rows[row].name.length != name.size();
  rows[row].count.store(1, relaxed);
  rows[row].state.store(1, std::memory_order_release);
}

void Names::store(RegionId region, std::string_view name, std::string_view value,
                  std::uint32_t source) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  const std::uint64_t row = storage_.allocate(region, 1);
  if (row == 0) return storage_.add_reason(reason_names_missing);
  NamedValue& stored = storage_.rows<NamedValue>(region)[row];
  stored.source = source;
  stored.name = storage_.store(name);
  stored.value = storage_.store(value);
  stored.state.store(1, std::memory_order_release);
}

void Names::set_setting(std::string_view name, std::string_view value,
                        bool from_environment) noexcept {
  store(RegionId::settings, name, value, from_environment ? 1 : 0);
}

void Names::set_environment(std::string_view name, std::string_view value) noexcept {
  store(RegionId::environment, name, value, 1);
}

}  // namespace cuwarden::ledger
