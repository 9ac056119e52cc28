// Regions grow in steps. The first steps are small, since most processes record little. Later steps
// grow with the region, so that a large ledger does not take thousands of system calls.
#include "runtime_hooks/ledger/storage/storage.hpp"

#include <algorithm>
#include <cstring>

#include "runtime_hooks/core/confinement.hpp"

namespace cuwarden::ledger {
namespace {

constexpr std::uint64_t smallest_step = 16 << 10;
constexpr std::uint64_t largest_step = 1 << 20;

}  // namespace

bool Storage::create(const BackingRequest& request) noexcept {
  if (!file_.create(request)) return false;
  Header& head = header();
  const Geometry& plan = file_.geometry();
  for (std::size_t i = 0; i < region_count; ++i) {
    const RegionExtent& extent = plan.regions[i];
    Region& region = head.regions[i];
    starts_[i] = file_.base() + extent.offset;
    region.offset = extent.offset;
    region.capacity_bytes = extent.capacity_bytes;
    region.row_bytes = extent.row_bytes;
    region.used.store(first_row(static_cast<RegionId>(i)), std::memory_order_relaxed);
    fills_[i].in_file = file_.in_file();
    fills_[i].capacity.store(extent.capacity_bytes, std::memory_order_relaxed);
    // The accessible part of a region is a mapping of its own, which grows. It is made now,
    // because a process with the greatest number of mappings could not make it later. That
    // number may be the very reason for an incident.
    file_.open_ahead(extent.offset, std::min(smallest_step, extent.capacity_bytes));
  }
  head.magic = magic;
  head.version = layout_version;
  head.header_bytes = sizeof(Header);
  head.file_bytes = plan.total_bytes;
  head.mapped_at = reinterpret_cast<std::uintptr_t>(file_.base());
  if (!file_.in_file()) add_reason(reason_ledger_in_memory);
  return true;
}

bool Storage::make_ready(RegionId id, std::uint64_t bytes) noexcept {
  Fill& fill = fills_[index_of(id)];
  if (bytes <= fill.ready.load(std::memory_order_acquire)) return true;
  if (is_confined()) {
    add_reason(reason_confined);
    return false;
  }
  const LedgerLocked locked(fill.lock, *this);
  if (!locked) return false;
  const std::uint64_t ready = fill.ready.load(std::memory_order_relaxed);
  const std::uint64_t capacity = fill.capacity.load(std::memory_order_relaxed);
  if (bytes <= ready) return true;
  if (bytes > capacity) return false;

  const RegionExtent& extent = file_.geometry().regions[index_of(id)];
  const std::uint64_t step = std::clamp(ready / 4, smallest_step, largest_step);
  const std::uint64_t target =
      std::min(round_up(std::max(ready + step, bytes), page_bytes), capacity);
  if (fill.in_file && file_.fill(extent.offset + ready, target - ready)) {
    header().regions[index_of(id)].file_bytes.store(target, std::memory_order_release);
    fill.ready.store(target, std::memory_order_release);
    return true;
  }
  bool is_memory = !fill.in_file;
  if (fill.in_file) {
    note_refusal();
    fill.in_file = false;
    is_memory = file_.replace_by_memory(extent.offset + ready, capacity - ready);
    if (is_memory) add_reason(reason_ledger_partly_in_memory);
  }
  if (is_memory && file_.open_memory(extent.offset + ready, target - ready)) {
    fill.ready.store(target, std::memory_order_release);
    return true;
  }
  note_refusal();
  fill.capacity.store(ready, std::memory_order_relaxed);
  return false;
}

void Storage::note_refusal() noexcept {
  const RefusedGrowth refusal = file_.refused_growth();
  if (refusal.error == 0) return;
  header().growth_error.store(static_cast<std::uint32_t>(refusal.error), std::memory_order_relaxed);
  header().growth_operation.store(static_cast<std::uint32_t>(refusal.operation),
                                  std::memory_order_release);
}

void Storage::make_room_ahead() noexcept {
  for (std::size_t i = 0; i < region_count; ++i) {
    const std::uint64_t ready = fills_[i].ready.load(std::memory_order_acquire);
    const std::uint64_t capacity = fills_[i].capacity.load(std::memory_order_relaxed);
    make_ready(static_cast<RegionId>(i),
               std::min(ready + std::max(ready, smallest_step), capacity));
  }
}

std::uint64_t Storage::allocate(RegionId id, std::uint64_t count) noexcept {
  std::atomic<std::uint64_t>& used = header().regions[index_of(id)].used;
  const RegionExtent& extent = file_.geometry().regions[index_of(id)];
  const std::uint64_t capacity_rows = capacity(id);
  std::uint64_t first = used.load(std::memory_order_relaxed);
  while (true) {
    // The pages are made ready before the row is counted, so that a reader or the writer never
    // meets a row without a page.
    if (count > capacity_rows || first > capacity_rows - count ||
        !make_ready(id, (first + count) * extent.row_bytes)) {
      return 0;
    }
    if (used.compare_exchange_weak(first, first + count, std::memory_order_release,
                                   std::memory_order_relaxed)) {
      return first;
    }
  }
}

bool Storage::has_ready_row(RegionId id) const noexcept {
  const std::uint64_t used = header().regions[index_of(id)].used.load(std::memory_order_relaxed);
  const std::uint64_t row_bytes = file_.geometry().regions[index_of(id)].row_bytes;
  return (used + 1) * row_bytes <= fills_[index_of(id)].ready.load(std::memory_order_acquire);
}

bool Storage::allocate_hooks(std::uint64_t count) noexcept {
  if (!make_ready(RegionId::hooks, count * sizeof(Hook))) return false;
  header().regions[index_of(RegionId::hooks)].used.store(count, std::memory_order_release);
  return true;
}

StringRef Storage::store(std::string_view text) noexcept {
  if (text.empty()) return {};
  const std::uint64_t offset = allocate(RegionId::strings, text.size());
  if (offset == 0) {
    add_reason(reason_names_missing);
    return {};
  }
  std::memcpy(rows<char>(RegionId::strings) + offset, text.data(), text.size());
  return {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(text.size())};
}

}  // namespace cuwarden::ledger
