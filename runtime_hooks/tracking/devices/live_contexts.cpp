#include "runtime_hooks/tracking/devices/live_contexts.hpp"

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::tracking {
namespace {

bool is_known(DeviceOrdinal device) {
  return device.value >= 0 && device.value < LiveContexts::device_limit;
}

}  // namespace

void LiveContexts::primary_retained(DeviceOrdinal device, ContextId context) noexcept {
  if (is_known(device)) primary_[device.value].store(context.value, relaxed);
}

ContextId LiveContexts::primary_of(DeviceOrdinal device) const noexcept {
  return is_known(device) ? ContextId{primary_[device.value].load(relaxed)} : ContextId{};
}

void LiveContexts::created(DeviceOrdinal device, ContextId context) noexcept {
  for (Created& row : created_) {
    std::uint64_t free = 0;
    if (!row.context.compare_exchange_strong(free, being_filled, relaxed)) continue;
    row.device.store(device.value, relaxed);
    row.context.store(context.value, std::memory_order_release);
    return;
  }
  is_full_.store(true, relaxed);
}

void LiveContexts::ended(ContextId context) noexcept {
  if (context.value <= being_filled) return;
  for (auto& primary : primary_) {
    std::uint64_t value = context.value;
    primary.compare_exchange_strong(value, 0, relaxed);
  }
  for (Created& row : created_) {
    std::uint64_t value = context.value;
    row.context.compare_exchange_strong(value, 0, relaxed);
  }
}

void LiveContexts::records_end(ContextId context) noexcept {
  const Locked locked(ends_lock_);
  if (!locked) return;
  last_ends_[ends_.load(relaxed) % last_ends_.size()].store(context.value, relaxed);
  ends_.fetch_add(1);
}

bool LiveContexts::has_ended_since(std::uint32_t ends, ContextId context) const noexcept {
  // The caller has added a record. Either the thread that ends the context finds it, or this thread
  // finds the end.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t now = ends_.load();
  if (now - ends > last_ends_.size()) return false;
  for (; ends != now; ++ends)
    if (last_ends_[ends % last_ends_.size()].load(relaxed) == context.value) return true;
  return false;
}

ContextId LiveContexts::created_on(DeviceOrdinal device, ContextId not_this) const noexcept {
  for (const Created& row : created_) {
    const std::uint64_t context = row.context.load(std::memory_order_acquire);
    if (context > being_filled && context != not_this.value &&
        row.device.load(relaxed) == device.value)
      return ContextId{context};
  }
  return {};
}

DeviceOrdinal LiveContexts::device_of(ContextId context) const noexcept {
  if (context.value <= being_filled) return no_device;
  for (std::int32_t device = 0; device < device_limit; ++device)
    if (primary_[device].load(relaxed) == context.value) return DeviceOrdinal{device};
  for (const Created& row : created_)
    if (row.context.load(std::memory_order_acquire) == context.value)
      return DeviceOrdinal{row.device.load(relaxed)};
  return no_device;
}

bool LiveContexts::green_created(std::uint64_t green, DeviceOrdinal device) noexcept {
  for (Green& row : greens_) {
    std::uint64_t free = 0;
    if (!row.green.compare_exchange_strong(free, being_filled, relaxed)) continue;
    row.context.store(0, relaxed);
    row.device.store(device.value, relaxed);
    row.green.store(green, std::memory_order_release);
    return true;
  }
  return false;
}

DeviceOrdinal LiveContexts::device_of_green(std::uint64_t green) const noexcept {
  for (const Green& row : greens_)
    if (row.green.load(std::memory_order_acquire) == green)
      return DeviceOrdinal{row.device.load(relaxed)};
  return no_device;
}

void LiveContexts::green_used_as(std::uint64_t green, ContextId context) noexcept {
  for (Green& row : greens_) {
    if (row.green.load(std::memory_order_acquire) != green) continue;
    row.context.store(context.value, relaxed);
    green_seen_.store(true, std::memory_order_release);
    return;
  }
}

DeviceOrdinal LiveContexts::green_destroyed(std::uint64_t green) noexcept {
  for (Green& row : greens_) {
    if (row.green.load(std::memory_order_acquire) != green) continue;
    const DeviceOrdinal device{row.device.load(relaxed)};
    row.context.store(0, relaxed);
    row.green.store(0, std::memory_order_release);
    return device;
  }
  return no_device;
}

ContextId LiveContexts::owner(ContextId current) const noexcept {
  if (current.value == 0 || !green_seen_.load(std::memory_order_acquire)) return current;
  for (const Green& row : greens_) {
    if (row.context.load(relaxed) != current.value) continue;
    const ContextId primary = primary_of(DeviceOrdinal{row.device.load(relaxed)});
    return primary.value != 0 ? primary : current;
  }
  return current;
}

bool LiveContexts::is_green_without_primary(ContextId current) const noexcept {
  if (current.value == 0 || !green_seen_.load(std::memory_order_acquire)) return false;
  for (const Green& row : greens_)
    if (row.context.load(relaxed) == current.value)
      return primary_of(DeviceOrdinal{row.device.load(relaxed)}).value == 0;
  return false;
}

}  // namespace cuwarden::tracking
