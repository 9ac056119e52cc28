#include "runtime_hooks/ledger/storage/storage.hpp"

#include <cstring>

namespace cuwarden::ledger {

std::uint64_t Storage::allocate(RegionId id, std::uint64_t count) noexcept {
  std::atomic<std::uint64_t>& used = header().regions[index_of(id)].used;
  const RegionExtent& extent = geometry().regions[index_of(id)];
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
  const std::uint64_t row_bytes = geometry().regions[index_of(id)].row_bytes;
  return is_ready(id, (used + 1) * row_bytes);
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
