// Regions grow in steps. The first steps are small, since most processes record little. Later steps
// grow with the region, so that a large ledger does not take thousands of system calls.
#include "runtime_hooks/ledger/storage/growing_file.hpp"

#include <algorithm>

#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t smallest_step = 16 << 10;
constexpr std::uint64_t largest_step = 1 << 20;

}  // namespace

bool GrowingFile::create(const BackingRequest& request) noexcept {
  if (!BackingFile::create(request)) return false;
  Header& head = header();
  const Geometry& plan = geometry();
  for (std::size_t i = 0; i < region_count; ++i) {
    const RegionExtent& extent = plan.regions[i];
    Region& region = head.regions[i];
    starts_[i] = base() + extent.offset;
    region.offset = extent.offset;
    region.capacity_bytes = extent.capacity_bytes;
    region.row_bytes = extent.row_bytes;
    region.used.store(first_row(static_cast<RegionId>(i)), std::memory_order_relaxed);
    growths_[i].in_file = in_file();
    growths_[i].capacity.store(extent.capacity_bytes, std::memory_order_relaxed);
    // The accessible part of a region is a mapping of its own, which grows. It is made now,
    // because a process with the greatest number of mappings could not make it later. That
    // number may be the very reason for an incident.
    open_ahead(extent.offset, std::min(smallest_step, extent.capacity_bytes));
  }
  head.magic = magic;
  head.version = layout_version;
  head.header_bytes = sizeof(Header);
  head.file_bytes = plan.total_bytes;
  head.mapped_at = reinterpret_cast<std::uintptr_t>(base());
  if (!in_file()) add_reason(reason_ledger_in_memory);
  return true;
}

bool GrowingFile::make_ready(RegionId id, std::uint64_t bytes) noexcept {
  if (is_ready(id, bytes)) return true;
  if (is_confined()) {
    add_reason(reason_confined);
    return false;
  }
  Growth& growth = growths_[index_of(id)];
  const LedgerLocked locked(growth.lock, *this);
  if (!locked) return false;
  const std::uint64_t ready = growth.ready.load(std::memory_order_relaxed);
  const std::uint64_t capacity = growth.capacity.load(std::memory_order_relaxed);
  if (bytes <= ready) return true;
  if (bytes > capacity) return false;

  const RegionExtent& extent = geometry().regions[index_of(id)];
  const std::uint64_t step = std::clamp(ready / 4, smallest_step, largest_step);
  const std::uint64_t target =
      std::min(round_up(std::max(ready + step, bytes), page_bytes), capacity);
  if (growth.in_file && fill(extent.offset + ready, target - ready)) {
    header().regions[index_of(id)].file_bytes.store(target, std::memory_order_release);
    growth.ready.store(target, std::memory_order_release);
    return true;
  }
  bool is_memory = !growth.in_file;
  if (growth.in_file) {
    note_refusal();
    growth.in_file = false;
    is_memory = replace_by_memory(extent.offset + ready, capacity - ready);
    if (is_memory) add_reason(reason_ledger_partly_in_memory);
  }
  if (is_memory && open_memory(extent.offset + ready, target - ready)) {
    growth.ready.store(target, std::memory_order_release);
    return true;
  }
  note_refusal();
  growth.capacity.store(ready, std::memory_order_relaxed);
  return false;
}

void GrowingFile::note_refusal() noexcept {
  const RefusedGrowth refusal = refused_growth();
  if (refusal.error == 0) return;
  header().growth_error.store(static_cast<std::uint32_t>(refusal.error), std::memory_order_relaxed);
  header().growth_operation.store(static_cast<std::uint32_t>(refusal.operation),
                                  std::memory_order_release);
}

void GrowingFile::make_room_ahead() noexcept {
  for (std::size_t i = 0; i < region_count; ++i) {
    const std::uint64_t ready = growths_[i].ready.load(std::memory_order_acquire);
    const std::uint64_t capacity = growths_[i].capacity.load(std::memory_order_relaxed);
    make_ready(static_cast<RegionId>(i),
               std::min(ready + std::max(ready, smallest_step), capacity));
  }
}

}  // namespace cuwarden::ledger
