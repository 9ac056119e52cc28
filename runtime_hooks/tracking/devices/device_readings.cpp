#include "runtime_hooks/tracking/devices/device_readings.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/files/proc_memory.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/ledger/write/allocation_records/totals.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"

namespace cuwarden::tracking {
namespace {

// cuMemGetInfo takes 3 us on an H200: at this interval 0.003 % of the run. On other systems it
// takes milliseconds. So the next reading comes after so many times the last one's length, at
// least.
constexpr std::uint64_t reading_interval_ns = 100'000'000, lengths_between_readings = 1000,
                        longest_interval_ns = 10'000'000'000;
// Reading /proc/self/statm takes about 10 us.
constexpr std::uint64_t rss_interval_ns = 250'000'000;

// Returns true for one thread once an interval, and plans the next time.
bool is_due(std::atomic<std::uint64_t>& next, std::uint64_t now, std::uint64_t interval) {
  std::uint64_t planned = next.load(std::memory_order_relaxed);
  return now >= planned &&
         next.compare_exchange_strong(planned, now + interval, std::memory_order_relaxed);
}

}  // namespace

void DeviceReadings::meet_first(DeviceOrdinal device) noexcept {
  if (met_[device.value].exchange(true)) return;
  const ErrnoGuard keep;
  char name[128] = "";
  CUuuid uuid{};
  CUdevice handle = 0;
  if (real_.cuDeviceGet != nullptr && real_.cuDeviceGet(&handle, device.value) == CUDA_SUCCESS) {
    if (real_.cuDeviceGetName != nullptr) real_.cuDeviceGetName(name, sizeof name, handle);
    if (real_.cuDeviceGetUuid_v2 != nullptr) real_.cuDeviceGetUuid_v2(&uuid, handle);
  }
  std::uint8_t bytes[16];
  static_assert(sizeof bytes == sizeof uuid.bytes);
  std::memcpy(bytes, uuid.bytes, sizeof bytes);
  name[sizeof name - 1] = '\0';
  ledger_.devices.identify(device, name, bytes);
}

std::optional<IdleBytes> DeviceReadings::idle_in_memory_pools(DeviceOrdinal device) const noexcept {
  const auto live = [&](Kind kind) { return ledger_.totals.live_bytes_on(device, kind); };
  return memory_pools_.idle_bytes(real_, device, live(Kind::graph), live(Kind::stream_ordered));
}

std::uint64_t DeviceReadings::read(DeviceOrdinal device, ledger::ReadingAt at,
                                   const FunctionRef<bool()>& may_ask) noexcept {
  ReadingListener* const listeners[] = {first_listener_, listener_};
  std::uint64_t begun[std::size(listeners)]{};
  for (std::size_t i = 0; i < std::size(listeners); ++i)
    if (listeners[i] != nullptr) begun[i] = listeners[i]->reading_begins(device);
  const auto reading = driver::read_current_device(real_);
  if (!reading) return 0;
  const auto idle = may_ask() ? idle_bytes(device) : std::nullopt;
  const std::uint64_t allocated = ledger_.totals.taken_on(device);
  // The reading is noted between the two listeners. One books memory that was there at the reading;
  // the other may change the device's memory.
  if (first_listener_ != nullptr) first_listener_->device_was_read(device, *reading, begun[0]);
  ledger_.devices.note_reading(device, {.at = at,
                                        .total_bytes = reading->total_bytes,
                                        .free_bytes = reading->free_bytes,
                                        .memory_pool_idle_bytes = idle,
                                        .allocated_bytes = allocated});
  if (listener_ != nullptr && listener_->device_was_read(device, *reading, begun[1]) &&
      first_listener_ != nullptr)
    first_listener_->memory_has_changed(device);
  return reading->free_bytes;
}

void DeviceReadings::look_around(std::uint64_t now) noexcept {
  const ErrnoGuard keep;
  if (is_due(next_rss_ns_, now, rss_interval_ns)) {
    const std::uint64_t rss = host_memory_in_use();
    if (rss != 0) ledger_.totals.sample_host_rss(rss, ledger_.time.now_ns());
  }
  const bool interval_is_over = is_due(next_interval_ns_, now, reading_interval_ns);
  const bool reading_is_due = is_due(next_reading_ns_, now, reading_interval_ns);
  plan_look();
  if (!interval_is_over && !reading_is_due) return;
  const CurrentContext here = queries_.current_unguarded();
  if (here.device == no_device) return;
  if (reading_is_due) read_and_plan(here.device, now);
  if (interval_is_over && listener_ != nullptr) listener_->interval_has_passed(here.device);
}

void DeviceReadings::read_and_plan(DeviceOrdinal device, std::uint64_t now) noexcept {
  const std::uint64_t begun_ns = clock_.now_ns();
  read(device, ledger::ReadingAt::last_call, [] { return true; });
  const std::uint64_t took_ns = clock_.now_ns() - begun_ns;
  // One slow reading may have had to wait for another thread.
  const std::uint64_t usual_ns =
      std::min(took_ns, last_took_ns_.exchange(took_ns, std::memory_order_relaxed));
  if (usual_ns <= reading_interval_ns / lengths_between_readings) return;
  next_reading_ns_.store(now + std::min(usual_ns * lengths_between_readings, longest_interval_ns),
                         std::memory_order_relaxed);
  plan_look();
}

void DeviceReadings::plan_look() noexcept {
  next_look_ns_.store(std::min({next_rss_ns_.load(std::memory_order_relaxed),
                                next_interval_ns_.load(std::memory_order_relaxed),
                                next_reading_ns_.load(std::memory_order_relaxed)}),
                      std::memory_order_relaxed);
}

DeviceReadings::FreeBytes DeviceReadings::read_at_exit(
    const FunctionRef<bool()>& may_ask) noexcept {
  const ErrnoGuard keep;
  FreeBytes free_bytes{};
  if (real_.cuCtxPushCurrent_v2 == nullptr || real_.cuCtxPopCurrent_v2 == nullptr)
    return free_bytes;
  for (std::int32_t ordinal = 0; ordinal < device_limit && may_ask(); ++ordinal) {
    if (!met_[ordinal].load(std::memory_order_relaxed)) continue;
    const DeviceOrdinal device{ordinal};
    const ContextId context = queries_.live_context_on(device);
    if (context.value == 0 || !may_ask()) continue;
    const CUresult result = real_.cuCtxPushCurrent_v2(reinterpret_cast<CUcontext>(context.value));
    driver::note_failed_call(result);
    if (result != CUDA_SUCCESS) continue;
    if (may_ask())
      free_bytes[static_cast<std::size_t>(ordinal)] =
          read(device, ledger::ReadingAt::exit, may_ask);
    CUcontext popped = nullptr;
    if (!driver::device_is_lost.load(std::memory_order_relaxed)) real_.cuCtxPopCurrent_v2(&popped);
  }
  const std::uint64_t rss = host_memory_in_use();
  if (rss != 0) ledger_.totals.sample_host_rss(rss, ledger_.time.now_ns());
  return free_bytes;
}

}  // namespace cuwarden::tracking
