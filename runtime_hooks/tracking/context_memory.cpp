#include "runtime_hooks/tracking/context_memory.hpp"

#include <algorithm>
#include <utility>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"

namespace cuwarden::tracking {
namespace {

ledger::ImplicitChange minus(Kind kind, std::uint64_t bytes) {
  const std::int64_t less = -static_cast<std::int64_t>(bytes);
  switch (kind) {
    case Kind::context:
      return {.context_bytes = less};
    case Kind::local_memory:
      return {.local_memory_bytes = less};
    default:
      return {.heap_bytes = less};
  }
}

}  // namespace

void ContextMemory::add(Entry entry, GroupId group, std::uint64_t bytes) noexcept {
  const Locked locked(lock_);
  if (!locked) return;
  if (entry.kind != Kind::context) entry.address = {++last_number_};
  ledger::NewRecord record;
  record.space = space_of(entry);
  record.address = entry.address;
  record.bytes.value = bytes;
  record.group = group;
  // Readers find a device's oldest context by its time.
  record.time_ns = ledger_.time.now_ns();
  record.context = entry.context;
  record.flags = ledger::record_owned_by_context;
  ledger_.allocations.add(record);
  if (count_ < most_records) entries_[count_++] = entry;
}

void ContextMemory::made(const Caller& caller, const CurrentContext& made, bool is_first) noexcept {
  if (made.device.value < 0 || made.device.value >= LiveContexts::device_limit) return;
  const ErrnoGuard keep;
  implicit_.meet(made.device);
  // Two threads may both find that they made a primary context.
  context_ended(made.context, made.device);
  const GroupId group = sites_.group_unguarded(caller, Kind::context, made.device);
  add({.kind = Kind::context,
       .is_first = is_first,
       .device = made.device,
       .context = made.context,
       .address = {made.context.value}},
      group, 0);
}

void ContextMemory::was_not_measured(std::uint64_t handle) noexcept {
  const ErrnoGuard keep;
  ledger_.allocations.grow(Space::context, {handle}, 0, {.set = ledger::record_bytes_uncertain});
}

void ContextMemory::made_green(const Caller& caller, const CurrentContext& primary,
                               std::uint64_t green) noexcept {
  if (primary.device.value < 0 || primary.device.value >= LiveContexts::device_limit) return;
  const ErrnoGuard keep;
  implicit_.meet(primary.device);
  const GroupId group = sites_.group_unguarded(caller, Kind::context, primary.device);
  add({.kind = Kind::context,
       .is_first = false,
       .device = primary.device,
       .context = primary.context,
       .address = {green}},
      group, 0);
}

ContextMemory::GreenEnding ContextMemory::begin_green_end(std::uint64_t green) noexcept {
  const ErrnoGuard keep;
  const Locked locked(lock_);
  if (!locked) return {};
  for (std::size_t i = 0; i < count_; ++i) {
    const Entry entry = entries_[i];
    if (entry.kind != Kind::context || entry.address.value != green || entry.is_context()) continue;
    GreenEnding ending{ledger_.allocations.take(Space::context, entry.address),
                       {entry.context, entry.device}};
    KeptByGreens& kept = kept_[static_cast<std::size_t>(entry.device.value)];
    if (kept.primary != entry.context) kept = {entry.context};
    kept.bytes += ending.record.fields.bytes.value;
    std::move(entries_.data() + i + 1, entries_.data() + count_, entries_.data() + i);
    --count_;
    return ending;
  }
  // There may have been no room for an entry when the green context was made.
  return {ledger_.allocations.take(Space::context, {green}), {}};
}

void ContextMemory::green_not_ended(const GreenEnding& ending) noexcept {
  const ErrnoGuard keep;
  const Locked locked(lock_);
  if (!locked || !ending.record) return;
  ledger_.allocations.put_back(ending.record);
  if (ending.primary.context.value == 0) return;
  const DeviceOrdinal device = ending.primary.device;
  KeptByGreens& kept = kept_[static_cast<std::size_t>(device.value)];
  kept.bytes -= std::min(kept.bytes, ending.record.fields.bytes.value);
  if (count_ < most_records)
    entries_[count_++] = {.kind = Kind::context,
                          .is_first = false,
                          .device = device,
                          .context = ending.primary.context,
                          .address = ending.record.address};
}

void ContextMemory::book(const Caller& caller, const CurrentContext& in,
                         const ledger::ImplicitChange& change) noexcept {
  const ErrnoGuard keep;
  const ledger::ImplicitEffect effect = implicit_.book(in.device, change);
  const CurrentContext owner{contexts_.owner(in.context), in.device};
  const auto follow = [&](Kind kind, std::int64_t bytes) {
    if (bytes > 0) grow(caller, kind, owner, static_cast<std::uint64_t>(bytes));
    if (bytes < 0) shrink(kind, owner, static_cast<std::uint64_t>(-bytes));
  };
  follow(Kind::context, effect.context_bytes);
  follow(Kind::local_memory, effect.local_memory_bytes);
  follow(Kind::heap, effect.heap_bytes);
}

void ContextMemory::grow(const Caller& caller, Kind kind, const CurrentContext& in,
                         std::uint64_t bytes) noexcept {
  if (kind == Kind::context && ledger_.allocations.grow(Space::context, {in.context.value}, bytes))
    return;
  if (kind == Kind::context) return grow_newest(kind, in, bytes);
  const bool is_full = [&] {
    const Locked locked(lock_);
    return count_ == most_records;
  }();
  if (is_full) return grow_newest(kind, in, bytes);
  const GroupId group = sites_.group_unguarded(caller, kind, in.device);
  add({.kind = kind, .is_first = false, .device = in.device, .context = in.context}, group, bytes);
}

void ContextMemory::grow_newest(Kind kind, const CurrentContext& in, std::uint64_t bytes) noexcept {
  const Locked locked(lock_);
  if (!locked) return;
  const Entry* newest = nullptr;
  for (std::size_t i = 0; i < count_; ++i) {
    const Entry& entry = entries_[i];
    if (entry.kind != kind || entry.device != in.device) continue;
    if (newest == nullptr || entry.context == in.context || newest->context != in.context)
      newest = &entry;
  }
  if (newest != nullptr) ledger_.allocations.grow(space_of(*newest), newest->address, bytes);
}

std::uint64_t ContextMemory::shrink_at(std::size_t index, std::uint64_t bytes) noexcept {
  const Entry& entry = entries_[index];
  ledger::TakenRecord record = ledger_.allocations.take(space_of(entry), entry.address);
  const std::uint64_t part = std::min(bytes, record.fields.bytes.value);
  record.fields.bytes.value -= part;
  if (record.fields.bytes.value != 0 || entry.kind == Kind::context) {
    ledger_.allocations.put_back(record);
  } else {
    std::move(entries_.data() + index + 1, entries_.data() + count_, entries_.data() + index);
    --count_;
  }
  return bytes - part;
}

void ContextMemory::shrink(Kind kind, const CurrentContext& in, std::uint64_t bytes) noexcept {
  const Locked locked(lock_);
  if (!locked) return;
  for (const bool of_context : {true, false}) {
    for (std::size_t i = count_; i > 0 && bytes > 0; --i) {
      const Entry& entry = entries_[i - 1];
      if (entry.kind == kind && entry.device == in.device &&
          (entry.context == in.context) == of_context)
        bytes = shrink_at(i - 1, bytes);
    }
  }
}

// Allocations::release_context() would end these records, too, but the entries here must go with
// them. Sums of live bytes do not tell the records' bytes, since frees of other threads may be
// missing there.
std::uint64_t ContextMemory::context_ended(ContextId context, DeviceOrdinal device) noexcept {
  const ErrnoGuard keep;
  std::uint64_t sum = 0;
  const Locked locked(lock_);
  if (!locked) return 0;
  const auto end = [&](const Entry& entry) {
    const ledger::TakenRecord record = ledger_.allocations.take(space_of(entry), entry.address);
    const std::uint64_t bytes = record.fields.bytes.value;
    if (bytes != 0) implicit_.book(entry.device, minus(entry.kind, bytes));
    sum += bytes;
    if (!entry.is_first) return;
    sum += ledger_.devices.implicit_bytes(entry.device).used_after_first_context;
    implicit_.book(entry.device, {.first_ended = true});
  };
  bool had_entry = false;
  auto* const begin = entries_.data();
  auto* const left = std::remove_if(begin, begin + count_, [&](const Entry& entry) {
    if (entry.context != context) return false;
    had_entry = had_entry || entry.is_context();
    end(entry);
    return true;
  });
  count_ = static_cast<std::size_t>(left - begin);
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i].bytes == 0 || kept_[i].primary != context) continue;
    implicit_.book(DeviceOrdinal{static_cast<std::int32_t>(i)},
                   minus(Kind::context, kept_[i].bytes));
    sum += std::exchange(kept_[i].bytes, 0);
  }
  // There may have been no room for an entry when the context was made.
  if (!had_entry && device != no_device)
    end({.kind = Kind::context,
         .is_first = false,
         .device = device,
         .context = context,
         .address = {context.value}});
  return sum;
}

}  // namespace cuwarden::tracking
