#include "runtime_hooks/hooks/execution/implicit_span.hpp"

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::hooks {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace

std::optional<driver::DeviceReading> ImplicitSpan::read() noexcept {
  const std::uint64_t begin_ns = now_ns();
  const auto reading = driver::read_current_device(call_.real());
  call_.execution().implicit.reading_took(now_ns() - begin_ns);
  return reading;
}

void ImplicitSpan::begin(DeviceOrdinal device) noexcept {
  if (!call_.recording()) return;
  const ErrnoGuard keep;
  ImplicitMemory& implicit = call_.execution().implicit;
  number_ = implicit.begin_span(device);
  if (number_ == 0) return;
  device_ = device;
  const tracking::FreeBases::Mark begun = implicit.bases.reading_begins(device);
  if (const auto reading = read()) {
    before_ = *reading;
    begun_ = true;
    call_.execution().objects.device_was_read(device, before_, begun);
    mark_ = implicit.bases.reading_begins(device);
  } else {
    implicit.end_span(device, number_);
  }
}

ImplicitSpan::~ImplicitSpan() {
  if (begun_) call_.execution().implicit.end_span(device_, number_);
}

std::optional<std::int64_t> ImplicitSpan::taken() noexcept {
  if (!begun_) return std::nullopt;
  const ErrnoGuard keep;
  const ExecutionParts parts = call_.execution();
  const auto reading = read();
  begun_ = false;
  if (!parts.implicit.end_span(device_, number_) || !reading) return std::nullopt;
  after_ = *reading;
  const std::int64_t bytes =
      static_cast<std::int64_t>(before_.free_bytes) - static_cast<std::int64_t>(after_.free_bytes);
  parts.implicit.bases.took(device_, bytes, mark_);
  return bytes;
}

void ImplicitSpan::book(const ledger::ImplicitChange& change, ContextId context) noexcept {
  call_.execution().context_memory.book(call_.caller(), {context, device_}, change);
  note_reading();
}

void ImplicitSpan::note_reading() noexcept {
  const ErrnoGuard keep;
  const ExecutionParts parts = call_.execution();
  parts.devices.note_reading(device_,
                             {.at = ledger::ReadingAt::last_call,
                              .total_bytes = after_.total_bytes,
                              .free_bytes = after_.free_bytes,
                              .memory_pool_idle_bytes = parts.readings.idle_bytes(device_)});
}

void ImplicitSpan::book_given_back(std::uint64_t bytes, ContextId context) noexcept {
  book({.given_back_bytes = bytes}, context);
  if (auto* const launches = call_.execution().implicit.launches_of(device_, context))
    launches->local_bytes.store(ImplicitMemory::initial_local_bytes, relaxed);
  launched_kernels.forget_all();
}

void ImplicitSpan::book_first_context(DeviceOrdinal device, ContextId first) noexcept {
  const ErrnoGuard keep;
  const ExecutionParts parts = call_.execution();
  const auto reading = driver::read_current_device(call_.real());
  if (!reading) return;
  device_ = device;
  after_ = *reading;
  // Handles and pools need no context, so they may have been there before this one.
  const std::uint64_t used = after_.total_bytes - after_.free_bytes;
  const std::uint64_t known =
      parts.totals.live_bytes_on(device) + parts.readings.idle_bytes(device).value_or(0);
  if (used > known) book({.used_after_first_context_bytes = used - known}, first);
}

}  // namespace cuwarden::hooks
