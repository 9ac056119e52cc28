#include "runtime_hooks/ledger/write/steps.hpp"

#include <cstddef>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {

std::string_view kept_step_name(std::string_view name) noexcept {
  if (name.size() <= longest_step_name) return name;
  std::size_t length = longest_step_name;
  // A character of UTF-8 is kept whole: its bytes but the first begin with the bits 10.
  while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;
  return name.substr(0, length);
}

void Steps::add(const EarlierSteps& earlier) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked || earlier.count == 0) return;
  std::atomic<std::uint64_t>& count = storage_.header().steps;
  count.store(count.load(relaxed) + earlier.count, relaxed);
  if (last_ == 0)
    store(count.load(relaxed), time_.since_start(earlier.last_monotonic_ns), earlier.last_name);
}

void Steps::begin(std::string_view name) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  std::atomic<std::uint64_t>& count = storage_.header().steps;
  const std::uint64_t number = count.load(relaxed) + 1;
  count.store(number, relaxed);
  const std::uint64_t now = time_.boundary();
  if (!name.empty()) end_name_at(now);
  // The last rows are kept for steps without names, which need few of them.
  const std::uint64_t rows = storage_.capacity(RegionId::steps);
  if (!name.empty() && storage_.used(RegionId::steps) >= rows - rows / share_of_nameless_steps) {
    storage_.add_reason(reason_names_missing);
    name = {};
  }
  if (number <= exact_steps || number >= last_ + last_ / exact_steps || !name.empty())
    store(number, now, name);
}

void Steps::end_name() noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (locked) end_name_at(time_.boundary());
}

void Steps::end_name_at(std::uint64_t time_ns) noexcept {
  if (named_row_ == 0) return;
  storage_.rows<StepMark>(RegionId::steps)[named_row_].name_end_ns.store(time_ns, relaxed);
  named_row_ = 0;
}

void Steps::store(std::uint64_t number, std::uint64_t time_ns, std::string_view name) noexcept {
  // A missing mark is no missing allocation, so a confined thread must not say that one is missing.
  if (is_confined() && !storage_.has_ready_row(RegionId::steps)) return;
  const std::uint64_t row = storage_.allocate(RegionId::steps, 1);
  if (row == 0) return;
  StepMark& mark = storage_.rows<StepMark>(RegionId::steps)[row];
  mark.number = last_ = number;
  mark.time_ns = time_ns;
  mark.name = storage_.store(kept_step_name(name));
  if (mark.name.length != 0) named_row_ = row;
  mark.state.store(1, std::memory_order_release);
}

}  // namespace cuwarden::ledger
