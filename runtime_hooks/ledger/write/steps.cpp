#include "runtime_hooks/ledger/write/steps.hpp"

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::ledger {

void Steps::begin(std::string_view name, const EarlierSteps& earlier) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  std::atomic<std::uint64_t>& count = storage_.header().steps;
  if (earlier.count != 0) {
    count.store(count.load(relaxed) + earlier.count, relaxed);
    if (last_ == 0)
      store(count.load(relaxed), time_.since_start(earlier.last_monotonic_ns), earlier.last_name);
  }
  const std::uint64_t number = count.load(relaxed) + 1;
  count.store(number, relaxed);
  // Further steps have no names once few rows are left. The next row ends the last step that has a
  // name, so that what follows is not taken for a part of it.
  if (storage_.used(RegionId::steps) + rows_for_nameless_steps >=
      storage_.capacity(RegionId::steps))
    name = {};
  const bool is_due = number <= exact_steps || number >= last_ + last_ / exact_steps;
  if (is_due || last_has_name_ || !name.empty()) store(number, time_.boundary(), name);
}

void Steps::store(std::uint64_t number, std::uint64_t time_ns, std::string_view name) noexcept {
  // A missing mark is no missing allocation, so a confined thread must not say that one is missing.
  if (is_confined() && !storage_.has_ready_row(RegionId::steps)) return;
  const std::uint64_t row = storage_.allocate(RegionId::steps, 1);
  if (row == 0) return;
  StepMark& mark = storage_.rows<StepMark>(RegionId::steps)[row];
  mark.number = last_ = number;
  mark.time_ns = time_ns;
  mark.name = storage_.store(name.substr(0, longest_step_name));
  last_has_name_ = !name.empty();
  mark.state.store(1, std::memory_order_release);
}

}  // namespace cuwarden::ledger
