#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/reader_rows.hpp"

namespace cuwarden::ledger {

SeriesView::Worst Reader::worst_of(const Series& series) noexcept {
  SeriesView::Worst worst;
  worst.version = get(series.worst_version);
  worst.all_counted = get(series.slabs_not_counted) == 0;
  worst.locked_bytes = get(series.worst_locked_bytes);
  worst.page_rounding_bytes = get(series.worst_page_rounding_bytes);
  worst.time_ns = get(series.worst_ns);
  // While they are being copied, and where the process was killed meanwhile, there are none.
  const std::uint32_t copied = get(series.holders_version);
  if (copied % 2 == 0) worst.first_holder = get(series.first_holder);
  worst.holders_ns = get(series.holders_ns);
  worst.holders_locked_bytes = get(series.holders_locked_bytes);
  return worst;
}

std::optional<SlabPageView> Reader::slab_page(std::uint64_t index,
                                              std::uint32_t version) const noexcept {
  const auto* const found = published<SlabPage>(RegionId::slab_pages, index);
  if (found == nullptr) return std::nullopt;
  // What is there now, before it is known whether that changed since.
  const std::uint64_t now = get(found->contents);
  const std::uint64_t contents =
      get(found->at_worst_version) == version ? get(found->contents_at_worst) : now;
  SlabPageView view{DeviceOrdinal{load_field(found->device)},
                    DeviceAddress{load_field(found->address)}, SlabContents::of(contents)};
  // No page has more; a damaged one says so.
  if (view.contents.cut_bytes() > slab_page_bytes || view.contents.bytes > slab_page_bytes ||
      view.contents.count > slab_page_bytes / slab_step_bytes)
    return std::nullopt;
  return view;
}

std::optional<WorstHolderView> Reader::worst_holder(std::uint64_t index) const noexcept {
  const auto* const found = row<WorstHolder>(RegionId::worst_holders, index);
  if (found == nullptr || load_field(found->group) == 0) return std::nullopt;
  return WorstHolderView{GroupId{load_field(found->group)}, load_field(found->count),
                         load_field(found->bytes), load_field(found->locked_bytes)};
}

}  // namespace cuwarden::ledger
