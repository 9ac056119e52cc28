#include "runtime_hooks/ledger/write/steps.hpp"

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::ledger {

void Steps::begin() noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  const std::uint64_t number = storage_.header().steps.load(relaxed) + 1;
  storage_.header().steps.store(number, relaxed);
  if (number > exact_steps && number < last_ + last_ / exact_steps) return;
  const std::uint64_t row = storage_.allocate(RegionId::steps, 1);
  if (row == 0) return;
  StepMark& mark = storage_.rows<StepMark>(RegionId::steps)[row];
  mark.number = last_ = number;
  // The clock of the allocations' times, so that their order is right.
  mark.time_ns = time_.recently_ns();
  mark.state.store(1, std::memory_order_release);
}

}  // namespace cuwarden::ledger
