#include "reporters/tables/worst_slabs.hpp"

#include <algorithm>
#include <bit>

#include "reporters/model/each_row.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;
using WorstByDevice = std::map<std::int32_t, WorstSlabs>;

bool was_counted_rightly(const Fragmentation& seen) {
  return seen.page_bytes == ledger::slab_page_bytes && seen.step_bytes == ledger::slab_step_bytes &&
         seen.largest_piece <= ledger::largest_slab_piece;
}

// Returns the reason why the worst moment is unknown; empty if it is known.
std::string why_unknown(const ledger::SeriesView::Worst& worst, const Fragmentation* seen) {
  if (!worst.all_counted) return "the process used more slabs than cuwarden counts";
  if (!worst.as_counted || (seen != nullptr && !was_counted_rightly(*seen)))
    return "the driver lays out small allocations in another way than cuwarden assumed";
  return {};
}

void add_page(WorstSlabs& all, const ledger::SlabPageView& page) {
  const ledger::SlabContents& contents = page.contents;
  if (contents.count == 0) return;
  all.rounding_bytes += contents.cut_bytes() - std::min(contents.cut_bytes(), contents.bytes);
  if (contents.is_rounded()) return;
  LiveSlab slab;
  slab.address = page.address.value;
  slab.live_count = contents.count;
  slab.live_bytes = contents.bytes;
  slab.cut_bytes = contents.cut_bytes();
  slab.class_bytes =
      std::bit_ceil(std::max(contents.bytes / contents.count, ledger::slab_step_bytes));
  SlabClass& size_class = all.classes[slab.class_bytes];
  ++size_class.slab_count;
  size_class.live_count += slab.live_count;
  size_class.live_bytes += slab.live_bytes;
  all.slabs.push_back(slab);
}

}  // namespace

WorstByDevice find_worst_slabs(const ledger::Reader& reader,
                               const std::map<std::int32_t, Fragmentation>& fragmentations,
                               std::vector<std::string>& reasons) {
  constexpr std::uint64_t much = std::uint64_t{64} << 20;
  WorstByDevice result;
  each_row(reader, RegionId::series, &ledger::Reader::series, [&](const auto& series) {
    if (series.host_rss || series.kind != Kind::device || series.device.value < 0 ||
        series.worst.version == 0)
      return;
    const auto seen = fragmentations.find(series.device.value);
    const std::string why =
        why_unknown(series.worst, seen == fragmentations.end() ? nullptr : &seen->second);
    if (!why.empty()) {
      if (series.worst.locked_bytes >= much)
        reasons.push_back("GPU " + std::to_string(series.device.value) +
                          ": the moment at which slabs locked most is not known: " + why);
      return;
    }
    result.emplace(series.device.value,
                   WorstSlabs{series.worst, series.worst.page_rounding_bytes, {}, {}});
  });
  const std::uint64_t pages = result.empty() ? 0 : reader.rows(RegionId::slab_pages);
  for (std::uint64_t row = 1; row < pages; ++row) {
    // The page's row names its device, and so the version of the worst moment that the row may
    // belong to.
    const auto device = reader.slab_page(row, 0);
    const auto worst = device ? result.find(device->device.value) : result.end();
    if (worst == result.end()) continue;
    if (const auto page = reader.slab_page(row, worst->second.moment.version))
      add_page(worst->second, *page);
  }
  for (auto& [device, worst] : result) std::ranges::sort(worst.slabs, {}, &LiveSlab::address);
  return result;
}

void add_stacks(const ledger::Reader& reader, const WorstByDevice& all, CallFrames& frames) {
  for (const auto& [device, worst] : all) {
    for (const ledger::WorstHolderView& holder : worst.holders())
      if (const auto group = reader.group(holder.group.value)) frames.add_stack(group->stack);
  }
}

void put_worst_fragmentation(const WorstByDevice& all, Put<model::WorstFragmentation> put) {
  for (const auto& [device, worst] : all) {
    model::WorstFragmentation row;
    row.device = static_cast<model::Id>(device);
    row.time_ns = worst.moment.time_ns;
    row.slab_count = worst.slabs.size();
    row.slab_locked_bytes = worst.moment.locked_bytes;
    row.rounding_bytes = worst.rounding_bytes;
    row.pieces_seen = worst.moment.pieces_seen;
    row.mempool_idle_bytes = worst.moment.read_memory_pool_idle_bytes;
    if (worst.moment.read_ns != 0) {
      row.largest_request_bytes = largest_request(
          worst.moment.read_free_bytes, worst.moment.read_memory_pool_idle_bytes.value_or(0),
          ledger::slab_page_bytes);
      row.read_ns = worst.moment.read_ns;
    }
    put(row);
  }
}

void put_worst_slab_map(const WorstByDevice& all, Put<model::WorstSlab> put) {
  for (const auto& [device, worst] : all) {
    for (const LiveSlab& slab : worst.slabs)
      put({static_cast<model::Id>(device), address_text(slab.address), slab.live_count,
           slab.live_bytes});
  }
}

void put_worst_slab_holders(const ledger::Reader& reader, const WorstByDevice& all,
                            const CallFrames& frames, Put<model::WorstSlabHolder> put) {
  for (const auto& [device, worst] : all) {
    for (const ledger::WorstHolderView& holder : worst.holders())
      put({.device = static_cast<model::Id>(device),
           .stack = frames.known_stack_of(reader.group(holder.group.value)),
           .count = holder.count,
           .bytes = holder.bytes,
           .locked_bytes = holder.locked_bytes,
           .time_ns = worst.moment.holders_ns,
           .of_locked_bytes = worst.moment.holders_locked_bytes});
  }
}

}  // namespace cuwarden
