#include "runtime_hooks/ledger/write/frameworks.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/ledger/storage/growing_file.hpp"

namespace cuwarden::ledger {

void Frameworks::put(FrameworkPool& row, const FrameworkFigures& figures,
                     std::uint64_t time_ns) noexcept {
  row.time_ns.store(time_ns, relaxed);
  row.reserved_bytes.store(figures.reserved_bytes, relaxed);
  row.allocated_bytes.store(figures.allocated_bytes, relaxed);
  row.allocated_count.store(figures.allocated_count, relaxed);
  const std::uint64_t peak = figures.peak_allocated_bytes != unknown_value
                                 ? figures.peak_allocated_bytes
                                 : figures.allocated_bytes;
  const std::uint64_t before = row.peak_allocated_bytes.load(relaxed);
  if (before == unknown_value || (peak != unknown_value && peak > before))
    row.peak_allocated_bytes.store(peak, relaxed);
  row.hole_count.store(figures.hole_count, relaxed);
  row.hole_bytes.store(figures.hole_bytes, relaxed);
  row.largest_free_bytes.store(figures.largest_free_bytes, relaxed);
}

std::uint64_t Frameworks::find(const FrameworkMemory& memory) const noexcept {
  const std::uint64_t used = storage_.used(RegionId::frameworks);
  for (std::uint64_t number = 1; number < used; ++number) {
    const FrameworkPool& known = row(number);
    if (known.state.load(std::memory_order_acquire) == 1 && known.device == memory.device.value &&
        known.incident == memory.incident.value && known.stack == memory.stack.value &&
        text(known.framework) == memory.framework &&
        text(known.framework_pool) == memory.framework_pool)
      return number;
  }
  return 0;
}

void Frameworks::store(const FrameworkMemory& memory, const FrameworkFigures& figures) noexcept {
  const LedgerLocked locked(lock_, storage_);
  if (!locked) return;
  const std::uint64_t now = time_.recently_ns();
  if (const std::uint64_t known = find(memory)) return put(row(known), figures, now);
  // Missing figures are no missing allocation, so a confined thread must not say that one is
  // missing.
  if (is_confined() && !storage_.has_ready_row(RegionId::frameworks)) return;
  if (storage_.used(RegionId::frameworks) > most_rows) return;
  const std::uint64_t number = storage_.allocate(RegionId::frameworks, 1);
  if (number == 0) return;
  FrameworkPool& made = row(number);
  made.framework = storage_.store(memory.framework);
  made.framework_pool = storage_.store(memory.framework_pool);
  made.device = memory.device.value;
  made.incident = memory.incident.value;
  made.stack = memory.stack.value;
  made.peak_allocated_bytes.store(unknown_value, relaxed);
  put(made, figures, now);
  made.state.store(1, std::memory_order_release);
  const auto index = static_cast<std::uint32_t>(memory.device.value);
  if (memory.framework == "PyTorch" && memory.framework_pool.empty() &&
      memory.incident.value == 0 && memory.stack.value == 0 && index < pytorch_rows_.size())
    pytorch_rows_[index].store(static_cast<std::uint32_t>(number), relaxed);
}

std::optional<FrameworkFigures> Frameworks::pytorch_on(DeviceOrdinal device) const noexcept {
  const auto index = static_cast<std::uint32_t>(device.value);
  if (index >= pytorch_rows_.size()) return std::nullopt;
  const std::uint32_t number = pytorch_rows_[index].load(relaxed);
  if (number == 0) return std::nullopt;
  const FrameworkPool& known = row(number);
  return FrameworkFigures{known.reserved_bytes.load(relaxed), known.allocated_bytes.load(relaxed)};
}

}  // namespace cuwarden::ledger
