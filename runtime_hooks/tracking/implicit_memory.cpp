#include "runtime_hooks/tracking/implicit_memory.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::tracking {

ImplicitMemory::ImplicitMemory(ledger::Writer& ledger, const DeviceQueries& queries,
                               DeviceReadings& readings, Neighbours& others) noexcept
    : neighbours(others), ledger_(ledger), queries_(queries), device_readings_(readings) {
  launched_kernels.forget_all();
  loaded_kernels.forget_all();
  submitted_graphs.forget_all();
}

std::uint64_t ImplicitMemory::begin_span(DeviceOrdinal device) noexcept {
  if (!has_spans(device)) return 0;
  Spans& spans = spans_[device.value];
  const bool alone = spans.open.fetch_add(1) == 0;
  spans.disturbed.store(!alone);
  open_.fetch_add(1);
  // A call that sees a later number than this one also sees that a span is under way.
  return next_span_.fetch_add(1);
}

bool ImplicitMemory::is_undisturbed(DeviceOrdinal device, std::uint64_t span) const noexcept {
  // Looked at first: a call that has ended by now has disturbed the span before.
  const bool is_inside_another = ledger_.thread_shards.others_in_calls(span + 1);
  return !spans_[device.value].disturbed.load() && !is_inside_another;
}

bool ImplicitMemory::end_span(DeviceOrdinal device, std::uint64_t span) noexcept {
  const bool counts = is_undisturbed(device, span);
  open_.fetch_sub(1);
  spans_[device.value].open.fetch_sub(1);
  return counts;
}

ImplicitMemory::Launches* ImplicitMemory::launches_of(DeviceOrdinal device,
                                                      ContextId context) noexcept {
  if (device.value < 0 || device.value >= LiveContexts::device_limit) return nullptr;
  Launches& launches = launches_[device.value];
  if (launches.context.exchange(context.value, relaxed) != context.value) {
    launches.any.store(false, relaxed);
    launches.captured_local_bytes.store(0, relaxed);
    launches.captured_count.store(0, relaxed);
    launches.heap_bytes.store(0, relaxed);
    launches.heap_readings.store(0, relaxed);
    launches.local_bytes.store(initial_local_bytes, relaxed);
  }
  return &launches;
}

ledger::ImplicitEffect ImplicitMemory::book(DeviceOrdinal device,
                                            const ledger::ImplicitChange& change) noexcept {
  if (device.value < 0 || device.value >= LiveContexts::device_limit) return {};
  booked_[device.value].store(true, relaxed);
  device_readings_.meet(device);
  return ledger_.devices.change_implicit(device, change);
}

void ImplicitMemory::context_ended() noexcept {
  launched_kernels.forget_all();
  loaded_kernels.forget_all();
  submitted_graphs.forget_all();
  for (std::int32_t ordinal = 0; ordinal < LiveContexts::device_limit; ++ordinal) {
    const DeviceOrdinal device{ordinal};
    if (!booked_[ordinal].load(relaxed) || queries_.live_context_on(device).value != 0) continue;
    booked_[ordinal].store(false, relaxed);
    launches_[ordinal].context.store(0, relaxed);
    ledger_.devices.change_implicit(device, {.contexts_ended = true});
  }
}

}  // namespace cuwarden::tracking
