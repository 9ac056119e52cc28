#include "runtime_hooks/tracking/implicit_objects.hpp"

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/storage/thread_shards.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::tracking {
namespace {

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

}  // namespace

// A call that makes or uses an object gives no memory back: if memory became free, another process
// or the driver itself freed it.
std::uint64_t ImplicitObjects::bytes_taken(const ObjectCall& call) noexcept {
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(call.taken.value_or(0), 0));
  return bytes <= most_bytes ? bytes : 0;
}

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

void ImplicitObjects::add_record(const Waiting& given, std::uint64_t bytes, std::uint8_t doubt,
                                 std::uint16_t difference) noexcept {
  const ImplicitObject& object = given.object;
  if (object.loaded_on != no_device)
    devices_with_code_.fetch_or(std::uint64_t{1} << given.device.value, relaxed);
  ledger::NewRecord record;
  record.space = object.space;
  record.address = object.address();
  record.bytes.value = bytes;
  record.group = given.group;
  record.time_ns = ledger_.time.recently_ns();
  record.context = contexts_.owner(given.context);
  record.flags = ledger::record_owned_by_context | doubt;
  record.difference = difference;
  ledger_.allocations.add(record);
}

void ImplicitObjects::add_bytes(const Waiting& to, std::uint64_t bytes,
                                ledger::CertaintyChange change, bool may_make) noexcept {
  if (bytes == 0 && change.set == 0 && change.clear == 0) return;
  if (!ledger_.allocations.grow(to.object.space, to.object.address(), bytes, change) && may_make)
    add_record(to, bytes, change.set, change.difference);
}

void ImplicitObjects::context_ended(ContextId context) noexcept {
  forget_waiting([&](const Waiting& entry) { return entry.context == context; });
}

// Managed memory moves between the host and the device without a call.
bool ImplicitObjects::has_managed(DeviceOrdinal device) const noexcept {
  return ledger_.totals.live_bytes_on(device, Kind::managed) != 0;
}

void ImplicitObjects::give_up(const Waiting& entry) noexcept {
  if (entry.ended != 0) return;
  ledger_.allocations.grow(entry.object.space, entry.object.address(), 0,
                           {.set = ledger::record_bytes_uncertain});
}

std::optional<FreeBases::Version> ImplicitObjects::base_to_wait_on(
    const ObjectCall& call, const ImplicitObject& object) noexcept {
  const FreeBases::Base base = implicit_.bases.of(call.here.device);
  if (!base.is_known) return std::nullopt;
  // Beside other processes, only this process's own figure tells.
  const bool is_disturbed = call.is_doubtful || implicit_.neighbours.may_exist(call.here.device);
  if (is_disturbed && !base.by_own) return std::nullopt;
  if (!call.base.is_known || !FreeBases::none_forgotten_between(base.version, call.base.version)) {
    // The device was read in the middle of the call, perhaps after it had taken its memory.
    implicit_.bases.memory_may_change();
    return std::nullopt;
  }
  // Objects whose base is gone can never be settled.
  if (count_.load(relaxed) == most_waiting)
    forget_waiting([&](const Waiting& entry) {
      if (entry.base_version == implicit_.bases.of(entry.device).version) return false;
      give_up(entry);
      return true;
    });
  const Locked locked(lock_);
  const std::uint32_t count = count_.load(relaxed);
  if (!locked || count == most_waiting) return std::nullopt;
  const bool waits =
      std::any_of(waiting_.begin(), waiting_.begin() + count, [&](const Waiting& entry) {
        return entry.is_of(object) && entry.object.address() == object.address() &&
               entry.base_version == base.version;
      });
  return waits ? std::nullopt : std::optional(base.version);
}

void ImplicitObjects::wait(const Waiting& object) noexcept {
  const Locked locked(lock_);
  const std::uint32_t count = count_.load(relaxed);
  if (!locked || count == most_waiting) return;
  waiting_[count] = object;
  count_.store(count + 1, relaxed);
}

void ImplicitObjects::made(const ObjectCall& call, const ImplicitObject& object) noexcept {
  const CurrentContext& here = call.here;
  if (!has_sums(here.device)) return;
  const ErrnoGuard keep;
  implicit_.meet(here.device);
  const GroupId group = sites_.group_unguarded(call.caller, object.kind, here.device);
  const std::uint64_t bytes = bytes_taken(call);
  const std::uint64_t share = call.taken ? share_of_kept(object.kind, here.device, bytes) : 0;
  book(object.kind, here.device, static_cast<std::int64_t>(bytes));
  Waiting entry{.object = object,
                .device = here.device,
                .group = group,
                .context = here.context,
                .base_version = 0,
                .is_new = true};
  const bool is_certain = call.taken && *call.taken == static_cast<std::int64_t>(bytes);
  add_record(entry, bytes + share, is_certain ? 0 : ledger::record_bytes_uncertain);
  if (has_context_ended(here)) return end_with_context(object, here);
  if (call.taken) return;
  if (const auto version = base_to_wait_on(call, object)) {
    entry.base_version = *version;
    wait(entry);
  }
  if (!call.is_doubtful) implicit_.bases.was_not_measured(here.device);
}

bool ImplicitObjects::has_context_ended(const CurrentContext& its) const noexcept {
  return contexts_.has_ended_since(its.ends, its.context) ||
         contexts_.has_ended_since(its.ends, contexts_.owner(its.context));
}

// If the thread that ended the context has found the record, it has subtracted the bytes.
void ImplicitObjects::end_with_context(const ImplicitObject& object,
                                       const CurrentContext& its) noexcept {
  for (const ContextId context : {its.context, contexts_.owner(its.context)})
    ledger_.allocations.release(object.space, object.address(), context,
                                [&](GroupId, std::uint64_t bytes) {
                                  book(object.kind, its.device, -static_cast<std::int64_t>(bytes));
                                });
}

void ImplicitObjects::took_more(const ObjectCall& call, const ImplicitObject& object) noexcept {
  const CurrentContext& here = call.here;
  const std::uint64_t bytes = bytes_taken(call);
  if (!has_sums(here.device) || (call.taken && bytes == 0)) return;
  const ErrnoGuard keep;
  implicit_.meet(here.device);
  const auto version = call.taken ? std::nullopt : base_to_wait_on(call, object);
  if (!call.taken && !call.is_doubtful) implicit_.bases.was_not_measured(here.device);
  if (!call.taken && !version && !call.is_doubtful) {
    ledger_.allocations.grow(object.space, object.address(), 0,
                             {.set = ledger::record_bytes_uncertain});
    return;
  }
  const Waiting entry{.object = object,
                      .device = here.device,
                      .group = sites_.group_unguarded(call.caller, object.kind, here.device),
                      .context = here.context,
                      .base_version = version.value_or(0)};
  if (version) return wait(entry);
  if (!call.taken) return add_bytes(entry, 0, {.set = ledger::record_bytes_uncertain}, true);
  book(object.kind, here.device, static_cast<std::int64_t>(bytes));
  add_bytes(entry, bytes, {}, true);
}

void ImplicitObjects::look_for_neighbours(DeviceOrdinal device,
                                          const driver::DeviceReading& reading,
                                          FreeBases::Version begun) noexcept {
  const FreeBases::Base base = implicit_.bases.of(device);
  if (!base.is_known || !base.is_exact || base.by_own || base.version != begun ||
      base.free_bytes == reading.free_bytes || has_managed(device))
    return;
  Neighbours& neighbours = implicit_.neighbours;
  // A memory pool of this process may give memory back long after a call, but takes none then.
  const bool is_less = reading.free_bytes < base.free_bytes;
  if (neighbours.may_exist(device) || (is_less && !ledger_.thread_shards.several()))
    neighbours.moved(device);
  else if (is_less)
    neighbours.ask(device);  // The call of another thread may be under way, too.
}

bool ImplicitObjects::settle(DeviceOrdinal device, const FreeBases::Base& base,
                             std::uint64_t free_bytes, bool by_own,
                             FreeBases::Version begun) noexcept {
  if (count_.load(relaxed) == 0) return false;
  const ErrnoGuard keep;
  const bool is_alone = by_own || !implicit_.neighbours.may_exist(device);
  const Locked locked(lock_);
  if (!locked) return false;
  const std::uint32_t count = count_.load(relaxed);
  const auto counts = [&](const Waiting& entry) {
    return entry.device == device && entry.base_version == begun;
  };
  std::uint64_t left = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    if (counts(waiting_[i])) left += std::max<std::uint64_t>(waiting_[i].ended, 1);
  const bool has_waited = left != 0;
  // A base that was forgotten or replaced while the device was read proves nothing.
  const bool is_proof = base.is_known && base.version == begun && base.by_own == by_own;
  std::uint64_t bytes = is_proof ? base.free_bytes - std::min(base.free_bytes, free_bytes) : 0;
  const bool is_theirs = is_alone && is_proof && !has_managed(device);
  if (!is_theirs) bytes = 0;
  const std::uint8_t doubt = !is_theirs ? ledger::record_bytes_uncertain
                             : left > 1 ? ledger::record_bytes_shared
                                        : 0;
  std::uint16_t difference = 0;
  if (doubt == ledger::record_bytes_shared && differences_ < UINT16_MAX)
    difference = static_cast<std::uint16_t>(++differences_);
  const auto take_parts = [&](std::uint64_t objects) {
    const std::uint64_t parts = objects == left ? bytes : bytes / left * objects;
    left -= objects;
    bytes -= parts;
    return parts;
  };
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Waiting entry = waiting_[i];
    if (counts(entry)) {
      const std::uint64_t part = take_parts(std::max<std::uint64_t>(entry.ended, 1));
      book(entry.object.kind, device, static_cast<std::int64_t>(part));
      if (entry.ended != 0) {
        ledger_.totals.learned_ended_size(entry.group, part);
        continue;
      }
      // An object without a record has ended, unless it is code, which gets its record now.
      const std::uint8_t settled = is_theirs && entry.is_new ? ledger::record_bytes_uncertain : 0;
      add_bytes(entry, part, {.set = doubt, .clear = settled, .difference = difference},
                part != 0 && entry.object.loaded_on != no_device);
    } else if (entry.device != device || (base.is_known && entry.base_version == base.version)) {
      waiting_[kept++] = entry;
    } else {
      give_up(entry);
    }
  }
  count_.store(kept, relaxed);
  return has_waited;
}

bool ImplicitObjects::is_plausible(DeviceOrdinal device, const FreeBases::Base& base,
                                   std::uint64_t free_bytes) noexcept {
  const std::uint64_t missing =
      base.is_known ? base.free_bytes - std::min(base.free_bytes, free_bytes) : 0;
  if (missing <= most_bytes || count_.load(relaxed) == 0) return true;
  Neighbours& neighbours = implicit_.neighbours;
  return neighbours.ask(device).has_value() && !neighbours.may_exist(device);
}

bool ImplicitObjects::device_was_read(DeviceOrdinal device, const driver::DeviceReading& reading,
                                      std::uint64_t begun) noexcept {
  // A call of another thread may have taken memory already, and its object not wait yet. So what
  // the reading shows is settled by a later one. The base is read last: it is forgotten before a
  // call ends.
  const bool is_early = ledger_.thread_shards.others_in_calls();
  const FreeBases::Base base = implicit_.bases.of(device);
  if (is_early && base.is_known) return false;
  const bool has_neighbours = implicit_.neighbours.may_exist(device);
  if (base.is_known && base.by_own && (has_neighbours || count_.load(relaxed) != 0)) {
    if (const auto own = implicit_.neighbours.ask(device))
      own_was_read(device, reading, *own, begun);
    return false;
  }
  const bool may_settle = is_plausible(device, base, reading.free_bytes);
  if (!settle(device, may_settle ? base : FreeBases::Base{}, reading.free_bytes, false, begun))
    look_for_neighbours(device, reading, begun);
  implicit_.bases.set(device, reading.free_bytes, begun);
  return false;
}

void ImplicitObjects::own_was_read(DeviceOrdinal device, const driver::DeviceReading& reading,
                                   std::uint64_t own_bytes, FreeBases::Version begun) noexcept {
  const FreeBases::Base base = implicit_.bases.of(device);
  if (ledger_.thread_shards.others_in_calls() && base.is_known) return;
  const std::uint64_t beside_own = reading.total_bytes - std::min(reading.total_bytes, own_bytes);
  settle(device, base, beside_own, true, begun);
  // NVML may have told that no other process is there.
  if (implicit_.neighbours.may_exist(device))
    implicit_.bases.set(device, beside_own, begun, true);
  else
    implicit_.bases.set(device, reading.free_bytes, begun);
}

}  // namespace cuwarden::tracking
