#include "runtime_hooks/hooks/execution/implicit_span.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/tracking/handle_set.hpp"

namespace cuwarden::hooks {
namespace {

// Longest call for which a second reading can confirm a difference. During a longer one, another
// process has much time to take memory and to rest again.
constexpr std::uint64_t longest_confirmed_ns = 100'000'000;

}  // namespace

std::optional<driver::DeviceReading> ImplicitSpan::read() noexcept {
  ImplicitMemory& implicit = call_.execution().implicit;
  const std::uint64_t begin_ns = implicit.neighbours.now_ns();
  const auto reading = driver::read_current_device(call_.real());
  implicit.reading_took(implicit.neighbours.now_ns() - begin_ns);
  return reading;
}

void ImplicitSpan::begin(DeviceOrdinal device) noexcept {
  if (!call_.recording()) return;
  const ErrnoGuard keep;
  ImplicitMemory& implicit = call_.execution().implicit;
  number_ = implicit.begin_span(device);
  if (number_ == 0) return;
  begun_ns_ = 0;
  own_before_ = own_after_ = std::nullopt;
  is_doubtful_ = false;
  device_ = device;
  const tracking::FreeBases::Version begun = implicit.bases.reading_begins(device);
  if (const auto reading = read()) {
    before_ = *reading;
    begun_ = true;
    base_version_ = begun;
    if (!implicit.neighbours.may_exist(device)) {
      call_.execution().objects.device_was_read(device, before_, begun);
      base_version_ = implicit.bases.reading_begins(device);
    }
    // The reading may have been the sign of another process.
    if (implicit.neighbours.may_exist(device)) expect_neighbours();
  } else {
    implicit.end_span(device, number_);
  }
}

// A question to NVML takes a while, so the device is read again after it.
void ImplicitSpan::expect_neighbours() noexcept {
  const ExecutionParts parts = call_.execution();
  const ImplicitMemory& implicit = parts.implicit;
  tracking::Neighbours& neighbours = implicit.neighbours;
  own_before_ = neighbours.ask(device_);
  if (own_before_)
    parts.objects.own_was_read(device_, before_, *own_before_, base_version_);
  else
    parts.objects.device_was_read(device_, before_, base_version_);
  base_version_ = parts.implicit.bases.reading_begins(device_);
  if (const auto reading = read()) {
    if (reading->free_bytes != before_.free_bytes && implicit.is_undisturbed(device_, number_))
      neighbours.moved(device_);
    before_ = *reading;
  }
  begun_ns_ = neighbours.now_ns();
}

std::optional<std::int64_t> ImplicitSpan::confirmed(std::int64_t taken,
                                                    std::int64_t plausible_bytes) noexcept {
  const ImplicitMemory& implicit = call_.execution().implicit;
  tracking::Neighbours& neighbours = implicit.neighbours;
  if (taken == 0) return taken;
  if (!neighbours.may_exist(device_)) {
    if (taken > plausible_bytes) neighbours.ask(device_);
    if (!neighbours.may_exist(device_)) return taken;
  }
  // A call that began before a neighbour was known counts as long.
  const std::uint64_t took_ns = begun_ns_ == 0 ? UINT64_MAX : neighbours.now_ns() - begun_ns_;
  if (own_before_) {
    // NVML may round its figures. One call's bytes may then be wrong by a unit of theirs, but the
    // errors of many calls cancel out.
    own_after_ = neighbours.ask(device_);
    if (own_after_)
      return static_cast<std::int64_t>(*own_after_) - static_cast<std::int64_t>(*own_before_);
  }
  const auto second = read();
  const bool rests = second && second->free_bytes == after_.free_bytes;
  if (!rests && implicit.is_undisturbed(device_, number_)) neighbours.moved(device_);
  if (rests && took_ns <= longest_confirmed_ns && !neighbours.is_busy(device_)) return taken;
  is_doubtful_ = true;
  return std::nullopt;
}

ImplicitSpan::~ImplicitSpan() {
  if (begun_) call_.execution().implicit.end_span(device_, number_);
}

std::optional<std::int64_t> ImplicitSpan::taken(std::int64_t plausible_bytes) noexcept {
  if (!begun_) return std::nullopt;
  const ErrnoGuard keep;
  const ExecutionParts parts = call_.execution();
  const auto reading = read();
  std::optional<std::int64_t> taken;
  const bool counts = reading && parts.implicit.is_undisturbed(device_, number_);
  if (counts) {
    after_ = *reading;
    taken = confirmed(static_cast<std::int64_t>(before_.free_bytes) -
                          static_cast<std::int64_t>(after_.free_bytes),
                      plausible_bytes);
  }
  begun_ = false;
  if (!parts.implicit.end_span(device_, number_) || !counts) {
    is_doubtful_ = false;
    return std::nullopt;
  }
  set_base(taken);
  return taken;
}

// If the base is this process's own figure of NVML, and the call was not measured, the base stays:
// the next such figure tells what the call has taken.
void ImplicitSpan::set_base(std::optional<std::int64_t> taken) noexcept {
  const ExecutionParts parts = call_.execution();
  tracking::FreeBases& bases = parts.implicit.bases;
  const bool has_neighbours = parts.implicit.neighbours.may_exist(device_);
  if (own_after_ && has_neighbours)
    bases.set(device_, after_.total_bytes - std::min(after_.total_bytes, *own_after_),
              base_version_, true);
  else if (bases.of(device_).by_own)
    bases.took(device_, taken.value_or(0), base_version_);
  else if (begun_ns_ != 0 || has_neighbours)
    // expect_neighbours() has read the device anew.
    bases.set(device_, after_.free_bytes, base_version_);
  else
    bases.took(device_,
               static_cast<std::int64_t>(before_.free_bytes) -
                   static_cast<std::int64_t>(after_.free_bytes),
               base_version_);
}

void ImplicitSpan::book(const ledger::ImplicitChange& change, ContextId context) noexcept {
  call_.execution().context_memory.book(call_.caller(), {context, device_}, change);
  note_reading();
}

void ImplicitSpan::note_reading() noexcept {
  const ErrnoGuard keep;
  const ExecutionParts parts = call_.execution();
  parts.devices.note_reading(device_, {.at = ledger::ReadingAt::last_call,
                                       .total_bytes = after_.total_bytes,
                                       .free_bytes = after_.free_bytes,
                                       .memory_pool_idle_bytes = parts.readings.idle_bytes(device_),
                                       .allocated_bytes = parts.totals.taken_on(device_)});
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
  const tracking::FreeBases::Version begun = parts.implicit.bases.reading_begins(device);
  const auto reading = driver::read_current_device(call_.real());
  if (!reading) return;
  device_ = device;
  after_ = *reading;
  parts.implicit.bases.set(device, after_.free_bytes, begun);
  call_.keeps_bases();
  // Handles and memory pools need no context, so they may have been there before this one.
  std::uint64_t used = after_.total_bytes - after_.free_bytes;
  const std::uint64_t known =
      parts.totals.live_bytes_on(device) + parts.readings.idle_bytes(device).value_or(0);
  if (used > known + ledger::ImplicitBytes::largest_context) {
    tracking::Neighbours& neighbours = parts.implicit.neighbours;
    neighbours.holds_memory(device);
    if (const auto own = neighbours.ask(device); own && *own > known) used = std::min(used, *own);
  }
  if (used > known) book({.used_after_first_context_bytes = used - known}, first);
}

}  // namespace cuwarden::hooks
