#include "runtime_hooks/ledger/write/steps.hpp"

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::ledger {

void Steps::begin(const EarlierSteps& earlier) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  std::atomic<std::uint64_t>& count = storage_.header().steps;
  if (earlier.count != 0) {
    count.store(count.load(relaxed) + earlier.count, relaxed);
    if (last_ == 0) store(count.load(relaxed), time_.since_start(earlier.last_monotonic_ns));
  }
  const std::uint64_t number = count.load(relaxed) + 1;
  count.store(number, relaxed);
  if (number <= exact_steps || number >= last_ + last_ / exact_steps)
    // The clock of the allocations' times, so that their order is right.
    store(number, time_.recently_ns());
}

void Steps::store(std::uint64_t number, std::uint64_t time_ns) noexcept {
  // A missing mark is no missing allocation, so a confined thread must not say that one is missing.
  if (is_confined() && !storage_.has_ready_row(RegionId::steps)) return;
  const std::uint64_t row = storage_.allocate(RegionId::steps, 1);
  if (row == 0) return;
  StepMark& mark = storage_.rows<StepMark>(RegionId::steps)[row];
  mark.number = last_ = number;
  mark.time_ns = time_ns;
  mark.state.store(1, std::memory_order_release);
}

}  // namespace cuwarden::ledger
