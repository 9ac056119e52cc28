#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/read/reader_rows.hpp"

namespace cuwarden::ledger {

SeriesView::Worst Reader::worst_of(const Series& series) const noexcept {
  SeriesView::Worst worst;
  worst.version = get(series.worst_version);
  worst.all_counted = get(series.slabs_not_counted) == 0;
  worst.as_counted = get(series.slabs_misfit) == 0;
  worst.locked_bytes = get(series.worst_locked_bytes);
  worst.page_rounding_bytes = get(series.worst_page_rounding_bytes);
  worst.time_ns = get(series.worst_ns);
  const std::uint32_t version = get(series.holders_version);
  worst.pieces_seen = get(series.pieces_seen);
  worst.read_ns = get(series.read_ns);
  worst.read_free_bytes = get(series.read_free_bytes);
  const std::uint64_t idle = get(series.read_memory_pool_idle_bytes);
  if (worst.read_ns != 0 && idle != unknown_value) worst.read_memory_pool_idle_bytes = idle;
  worst.holders_ns = get(series.holders_ns);
  worst.holders_locked_bytes = get(series.holders_locked_bytes);
  const std::uint64_t first = get(series.first_holder);
  for (std::size_t i = 0; first != 0 && i < worst.holders.size(); ++i) {
    const auto* const found = row<WorstHolder>(RegionId::worst_holders, first + i);
    if (found == nullptr) break;
    worst.holders[i] = {GroupId{load_field(found->group)}, load_field(found->count),
                        load_field(found->bytes), load_field(found->locked_bytes)};
  }
  // While the holders are being copied, or if the process was killed meanwhile, none are returned.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (version % 2 != 0 || get(series.holders_version) != version) {
    worst.holders = {};
    worst.holders_ns = worst.holders_locked_bytes = worst.pieces_seen = 0;
    worst.read_ns = worst.read_free_bytes = 0;
    worst.read_memory_pool_idle_bytes.reset();
  }
  return worst;
}

std::optional<SlabPageView> Reader::slab_page(std::uint64_t index,
                                              std::uint32_t version) const noexcept {
  const auto* const found = published<SlabPage>(RegionId::slab_pages, index);
  if (found == nullptr) return std::nullopt;
  // The present contents are read first. The writer copies contents before it changes them, so if
  // there is no copy afterwards, these are still the contents of the worst moment.
  const std::uint64_t now = get(found->contents);
  const std::uint64_t contents = get(found->at_worst_version) == (version & ~slab_copying)
                                     ? get(found->contents_at_worst)
                                     : now;
  SlabPageView view{DeviceOrdinal{load_field(found->device)},
                    DeviceAddress{load_field(found->address)}, SlabContents::of(contents)};
  // A page cannot have more than this; larger numbers come from a damaged ledger.
  if (view.contents.cut_bytes() > slab_page_bytes || view.contents.bytes > slab_page_bytes ||
      view.contents.count > slab_page_bytes / slab_step_bytes)
    return std::nullopt;
  return view;
}

}  // namespace cuwarden::ledger
