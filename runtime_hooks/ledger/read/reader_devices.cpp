#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/format/implicit_bytes.hpp"
#include "runtime_hooks/ledger/read/reader_rows.hpp"

namespace cuwarden::ledger {

std::optional<DeviceView> Reader::device(std::uint64_t index) const noexcept {
  const auto* const found = published<Device>(RegionId::devices, index);
  if (found == nullptr) return std::nullopt;
  DeviceView view;
  view.ordinal = DeviceOrdinal{load_field(found->ordinal)};
  for (std::size_t i = 0; i < sizeof view.uuid; ++i) view.uuid[i] = load_field(found->uuid[i]);
  view.name = fixed_text(found->name, sizeof found->name);
  view.spilled_bytes = get(found->spilled_bytes);
  view.spilled_peak_bytes = get(found->spilled_peak_bytes);
  view.spilled_count = get(found->spilled_count);
  view.spilled_in_stream_order_bytes = get(found->spilled_in_stream_order_bytes);
  view.arena = {.held_bytes = get(found->arena_held_bytes),
                .live_bytes = get(found->arena_live_bytes),
                .served_count = get(found->arena_served_count),
                .served_bytes = get(found->arena_served_bytes),
                .returned_bytes = get(found->arena_returned_bytes),
                .meshed_pages = get(found->arena_meshed_pages),
                .meshed_bytes = get(found->arena_meshed_bytes),
                .pause_ns = get(found->arena_pause_ns),
                .pauses = get(found->arena_pauses),
                .plan_ns = get(found->arena_plan_ns),
                .prepare_ns = get(found->arena_prepare_ns),
                .release_ns = get(found->arena_release_ns)};
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint32_t version = get(found->version);
    const std::uint32_t at = get(found->at);
    view.time_ns = get(found->time_ns);
    view.total_bytes = get(found->total_bytes);
    view.free_bytes = get(found->free_bytes);
    view.other_processes_bytes = get(found->other_processes_bytes);
    const std::uint64_t idle = get(found->memory_pool_idle_bytes);
    view.memory_pool_idle_bytes = idle == unknown_value ? std::nullopt : std::optional(idle);
    view.allocated_when_read_bytes = get(found->allocated_when_read_bytes);
    view.implicit_when_read_bytes = get(found->implicit_when_read_bytes);
    view.implicit = implicit_bytes_of(*found);
    view.largest_local_kernel = text(found->largest_local_kernel, longest_path);
    // A process that was killed while it wrote leaves an odd version and no reading to trust.
    const bool whole = (version & 1) == 0 && get(found->version) == version;
    view.at = whole && at <= static_cast<std::uint32_t>(ReadingAt::exit)
                  ? static_cast<ReadingAt>(at)
                  : ReadingAt::never;
    if (whole) break;
  }
  return view;
}

}  // namespace cuwarden::ledger
