#include "runtime_hooks/families/implicit_memory.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/families/hooked_call.hpp"
#include "runtime_hooks/families/launched_kernels.hpp"

namespace cuwarden::families {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace

void note_refusal(HookedCall& call, CUresult result, ledger::Asked asked) noexcept {
  if (call.recording()) call.recorder().refused(call.caller(), result, asked);
}

ImplicitMemory::ImplicitMemory() noexcept {
  launched_kernels.forget_all();
  loaded_kernels.forget_all();
}

bool ImplicitMemory::begin_span(DeviceOrdinal device) noexcept {
  if (!has_spans(device)) return false;
  Spans& spans = spans_[device.value];
  const bool alone = spans.open.fetch_add(1) == 0;
  spans.disturbed.store(!alone);
  open_.fetch_add(1);
  return true;
}

bool ImplicitMemory::end_span(DeviceOrdinal device) noexcept {
  open_.fetch_sub(1);
  Spans& spans = spans_[device.value];
  const bool undisturbed = !spans.disturbed.load();
  spans.open.fetch_sub(1);
  return undisturbed;
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

void ImplicitMemory::book(Recorder& recorder, DeviceOrdinal device,
                          const ledger::ImplicitChange& change) noexcept {
  if (device.value < 0 || device.value >= LiveContexts::device_limit) return;
  booked_[device.value].store(true, relaxed);
  recorder.meet(device);
  recorder.ledger().change_implicit(device, change);
}

void ImplicitMemory::context_ended(Recorder& recorder) noexcept {
  launched_kernels.forget_all();
  loaded_kernels.forget_all();
  for (std::int32_t ordinal = 0; ordinal < LiveContexts::device_limit; ++ordinal) {
    const DeviceOrdinal device{ordinal};
    if (!booked_[ordinal].load(relaxed) || recorder.live_context_on(device).value != 0) continue;
    booked_[ordinal].store(false, relaxed);
    launches_[ordinal].context.store(0, relaxed);
    recorder.ledger().change_implicit(device, {.contexts_ended = true});
  }
}

void ImplicitSpan::begin(DeviceOrdinal device) noexcept {
  if (!call_.recording()) return;
  const ErrnoGuard keep;
  ImplicitMemory& implicit = call_.recorder().implicit();
  if (!implicit.begin_span(device)) return;
  device_ = device;
  if (const auto reading = driver::read_current_device(call_.real())) {
    before_ = *reading;
    begun_ = true;
  } else {
    implicit.end_span(device);
  }
}

ImplicitSpan::~ImplicitSpan() {
  if (begun_) call_.recorder().implicit().end_span(device_);
}

std::optional<std::int64_t> ImplicitSpan::taken() noexcept {
  if (!begun_) return std::nullopt;
  const ErrnoGuard keep;
  Recorder& recorder = call_.recorder();
  const auto reading = driver::read_current_device(call_.real());
  begun_ = false;
  if (!recorder.implicit().end_span(device_) || !reading) return std::nullopt;
  after_ = *reading;
  return static_cast<std::int64_t>(before_.free_bytes) -
         static_cast<std::int64_t>(after_.free_bytes);
}

std::optional<std::int64_t> ImplicitSpan::taken_by_code() noexcept {
  constexpr std::int64_t largest_code = std::int64_t{2} << 30;
  const auto bytes = taken();
  return bytes && *bytes <= largest_code ? bytes : std::nullopt;
}

void ImplicitSpan::book(const ledger::ImplicitChange& change) noexcept {
  const ErrnoGuard keep;
  Recorder& recorder = call_.recorder();
  recorder.implicit().book(recorder, device_, change);
  recorder.ledger().read_device(device_, {.at = ledger::ReadingAt::last_call,
                                          .total_bytes = after_.total_bytes,
                                          .free_bytes = after_.free_bytes,
                                          .pool_idle_bytes = recorder.idle_bytes(device_)});
}

void ImplicitSpan::book_given_back(std::uint64_t bytes, ContextId context) noexcept {
  book({.given_back_bytes = bytes});
  if (auto* const launches = call_.recorder().implicit().launches_of(device_, context))
    launches->local_bytes.store(ImplicitMemory::initial_local_bytes, relaxed);
  launched_kernels.forget_all();
}

void ImplicitSpan::book_first_context(DeviceOrdinal device) noexcept {
  const ErrnoGuard keep;
  Recorder& recorder = call_.recorder();
  const auto reading = driver::read_current_device(call_.real());
  if (!reading) return;
  device_ = device;
  after_ = *reading;
  // Handles and pools need no context: they may be there already.
  const std::uint64_t used = after_.total_bytes - after_.free_bytes;
  const std::uint64_t known =
      recorder.ledger().live_bytes_on(device) + recorder.idle_bytes(device).value_or(0);
  if (used > known) book({.used_after_first_context_bytes = used - known});
}

}  // namespace cuwarden::families
