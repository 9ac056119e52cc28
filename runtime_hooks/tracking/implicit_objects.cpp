#include "runtime_hooks/tracking/implicit_objects.hpp"

#include <algorithm>
#include <bit>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::tracking {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

// Returns the device's sum of implicit memory of a kind, with what the driver keeps.
std::uint64_t sum_of(Kind kind, const ledger::ImplicitBytes& bytes) {
  switch (kind) {
    case Kind::stream:
      return bytes.streams;
    case Kind::module:
      return bytes.modules;
    default:
      return bytes.graphs;
  }
}

ledger::ImplicitChange change_of(Kind kind, std::int64_t bytes) {
  switch (kind) {
    case Kind::stream:
      return {.stream_bytes = bytes};
    case Kind::module:
      return {.module_bytes = bytes};
    default:
      return {.graph_bytes = bytes};
  }
}

// True if the device's implicit memory is summed up: its ordinal is from 0 to 63.
bool has_sums(DeviceOrdinal device) {
  return device.value >= 0 && device.value < LiveContexts::device_limit;
}

// A call that makes or uses an object gives no memory back: if memory became free, another process
// or the driver itself freed it.
std::uint64_t bytes_taken(Taken taken) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(taken.value_or(0), 0));
}

}  // namespace

void ImplicitObjects::book(Kind kind, DeviceOrdinal device, std::int64_t bytes) noexcept {
  if (bytes != 0) implicit_.book(device, change_of(kind, bytes));
}

std::uint64_t ImplicitObjects::share_of_kept(Kind kind, DeviceOrdinal device,
                                             std::uint64_t taken) noexcept {
  const std::uint64_t sum = sum_of(kind, ledger_.devices.implicit_bytes(device));
  const std::uint64_t live = ledger_.totals.live_bytes_on(device, kind);
  const std::uint64_t kept = sum - std::min(sum, live);
  if (kept == 0) return 0;
  const std::uint64_t count = ledger_.totals.live_count_on(device, kind);
  const std::uint64_t usual = count == 0 ? kept : live / count;
  return std::min(kept, usual - std::min(usual, taken));
}

void ImplicitObjects::add_record(const ImplicitObject& object, GroupId group, ContextId context,
                                 std::uint64_t bytes) noexcept {
  ledger::NewRecord record;
  record.space = object.space;
  record.address.value = object.handle;
  record.bytes.value = bytes;
  record.group = group;
  record.time_ns = ledger_.time.recently_ns();
  record.context = contexts_.owner(context);
  record.flags = ledger::record_owned_by_context;
  ledger_.allocations.add(record);
}

void ImplicitObjects::add_bytes(const Waiting& to, std::uint64_t bytes, bool may_make) noexcept {
  const ImplicitObject& object = to.object;
  if (bytes == 0 || ledger_.allocations.grow(object.space, DeviceAddress{object.handle}, bytes) ||
      !may_make)
    return;
  if (object.space == Space::kernel)
    devices_with_code_.fetch_or(std::uint64_t{1} << to.device.value, relaxed);
  add_record(object, to.group, to.context, bytes);
}

template <class IsGone>
void ImplicitObjects::forget_waiting(IsGone is_gone) noexcept {
  if (count_.load(relaxed) == 0) return;
  const Locked locked(lock_);
  if (!locked) return;
  for (Waiting& entry : waiting_) {
    if (entry.device == no_device || !is_gone(entry)) continue;
    entry.device = no_device;
    count_.fetch_sub(1, relaxed);
  }
}

void ImplicitObjects::context_ended(ContextId context) noexcept {
  forget_waiting([&](const Waiting& entry) { return entry.context == context; });
}

void ImplicitObjects::wait(DeviceOrdinal device, const Waiting& object) noexcept {
  const ImplicitMemory::Base base = implicit_.base_of(device);
  const Locked locked(lock_);
  if (!base.is_known || !locked) return;
  for (Waiting& entry : waiting_) {
    // An entry whose base was forgotten can never be settled.
    if (entry.device != no_device && entry.epoch == implicit_.base_of(entry.device).epoch) continue;
    if (entry.device == no_device) count_.fetch_add(1, relaxed);
    entry = object;
    entry.device = device;
    entry.epoch = base.epoch;
    return;
  }
}

void ImplicitObjects::made(const Caller& caller, const ImplicitObject& object,
                           const CurrentContext& here, Taken taken) noexcept {
  if (!has_sums(here.device)) return;
  const ErrnoGuard keep;
  const GroupId group = sites_.group_unguarded(caller, object.kind, here.device);
  const std::uint64_t bytes = bytes_taken(taken);
  const std::uint64_t share = taken ? share_of_kept(object.kind, here.device, bytes) : 0;
  book(object.kind, here.device, static_cast<std::int64_t>(bytes));
  add_record(object, group, here.context, bytes + share);
  if (!taken) wait(here.device, {object, here.device, group, here.context});
}

void ImplicitObjects::took_more(const Caller& caller, const ImplicitObject& object,
                                const CurrentContext& here, Taken taken) noexcept {
  if (!has_sums(here.device) || (taken && *taken <= 0)) return;
  const ErrnoGuard keep;
  if (!taken && !implicit_.base_of(here.device).is_known) return;
  const Waiting entry{object, here.device, sites_.group_unguarded(caller, object.kind, here.device),
                      here.context};
  if (!taken) return wait(here.device, entry);
  book(object.kind, here.device, *taken);
  add_bytes(entry, bytes_taken(taken), true);
}

ledger::TakenRecord ImplicitObjects::take(const ImplicitObject& object) noexcept {
  const ErrnoGuard keep;
  forget_waiting([&](const Waiting& entry) {
    return entry.object.space == object.space && entry.object.handle == object.handle;
  });
  return ledger_.allocations.take(object.space, DeviceAddress{object.handle});
}

DeviceOrdinal ImplicitObjects::device_of(const ledger::TakenRecord& record) const noexcept {
  return record ? ledger_.groups.device_of(record.fields.group) : no_device;
}

std::uint64_t ImplicitObjects::end_code_of(const ImplicitObject& object) noexcept {
  std::uint64_t bytes = 0;
  owners.remove_all_of({object.space, object.handle}, [&](std::uint64_t kernel) {
    for (std::uint64_t left = devices_with_code_.load(relaxed); left != 0; left &= left - 1) {
      const ImplicitObject code = code_of(kernel, DeviceOrdinal{std::countr_zero(left)});
      const ledger::TakenRecord record =
          ledger_.allocations.take(code.space, DeviceAddress{code.handle});
      if (record) bytes += record.fields.bytes.value;
    }
  });
  return bytes;
}

void ImplicitObjects::ended(const ImplicitObject& object, const ledger::TakenRecord& record,
                            DeviceOrdinal device, Taken taken) noexcept {
  const ErrnoGuard keep;
  const std::uint64_t code = object.kind == Kind::module ? end_code_of(object) : 0;
  const auto known = static_cast<std::int64_t>(code + record.fields.bytes.value);
  book(object.kind, device, taken ? std::min<std::int64_t>(*taken, 0) : -known);
}

void ImplicitObjects::not_ended(const ledger::TakenRecord& record) noexcept {
  ledger_.allocations.put_back(record);
}

bool ImplicitObjects::device_was_read(DeviceOrdinal device, const driver::DeviceReading& reading,
                                      std::uint64_t begun) noexcept {
  if (count_.load(relaxed) != 0) {
    const ErrnoGuard keep;
    const Locked locked(lock_);
    const ImplicitMemory::Base base = implicit_.base_of(device);
    const auto waits = [&](const Waiting& entry) { return entry.device == device; };
    const auto counts = [&](const Waiting& entry) { return waits(entry) && entry.epoch == begun; };
    std::uint64_t left =
        locked ? static_cast<std::uint64_t>(std::ranges::count_if(waiting_, counts)) : 0;
    // A base that was forgotten while the device was read proves nothing.
    std::uint64_t bytes = base.is_known && base.epoch == begun
                              ? base.free_bytes - std::min(base.free_bytes, reading.free_bytes)
                              : 0;
    for (Waiting& entry : waiting_) {
      if (!locked || !waits(entry)) continue;
      if (counts(entry)) {
        const std::uint64_t part = bytes / left--;
        bytes -= part;
        book(entry.object.kind, device, static_cast<std::int64_t>(part));
        // An object without a record has ended, unless it is code, which gets its record now.
        add_bytes(entry, part, entry.object.space == Space::kernel);
      }
      entry.device = no_device;
      count_.fetch_sub(1, relaxed);
    }
  }
  implicit_.set_base(device, reading.free_bytes, begun);
  return false;
}

}  // namespace cuwarden::tracking
