#include "runtime_hooks/tracking/devices/neighbours.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/driver/device_reading.hpp"

namespace cuwarden::tracking {
namespace {

constexpr std::uint64_t at_start_ns = 50'000'000, share_of_run = 1000;

}  // namespace

bool Neighbours::moved_within(DeviceOrdinal device, std::uint64_t ns) const noexcept {
  if (!is_kept(device)) return false;
  const std::uint64_t moved_ns = states_[device.value].moved_ns.load(relaxed);
  return moved_ns != 0 && clock_.now_ns() < moved_ns + ns;
}

bool Neighbours::may_exist(DeviceOrdinal device) const noexcept {
  if (!is_kept(device)) return false;
  const Known known = states_[device.value].known.load(relaxed);
  return known == Known::others || (known == Known::nothing && moved_within(device, likely_ns));
}

bool Neighbours::is_busy(DeviceOrdinal device) const noexcept {
  return moved_within(device, busy_ns);
}

void Neighbours::moved(DeviceOrdinal device) noexcept {
  if (!is_kept(device)) return;
  State& state = states_[device.value];
  state.moved_ns.store(clock_.now_ns(), relaxed);
  Known alone = Known::alone;  // no longer true
  state.known.compare_exchange_strong(alone, Known::nothing, relaxed);
}

void Neighbours::holds_memory(DeviceOrdinal device) noexcept {
  if (is_kept(device)) states_[device.value].known.store(Known::others, relaxed);
}

bool Neighbours::may_ask(std::uint64_t now_ns) const noexcept {
  return spent_ns_.load(relaxed) + cost_ns_.load(relaxed) <=
         at_start_ns + (now_ns - start_ns_) / share_of_run;
}

// A list in a container may leave other processes out. Their memory shows in the device's reading.
void Neighbours::judge(State& state, const DeviceHolders& found) noexcept {
  bool any = found.has_others.value_or(false);
  if (!any && found.own_bytes) {
    const auto reading = driver::read_current_device(real_);
    any = reading &&
          reading->total_bytes - reading->free_bytes > *found.own_bytes + most_hidden_bytes;
  }
  if (any)
    state.known.store(Known::others, relaxed);
  else if (found.has_others)
    state.known.store(Known::alone, relaxed);
}

std::optional<std::uint64_t> Neighbours::ask(DeviceOrdinal device) noexcept {
  const pthread_t last = asks_at_exit_.load(relaxed);
  const bool is_last = last != pthread_t{} && last == pthread_self();
  if (list_ == nullptr || !is_kept(device) || (ends_.load(relaxed) && !is_last) ||
      driver::device_is_lost.load(relaxed) || real_.cuDeviceGet == nullptr ||
      real_.cuDeviceGetUuid_v2 == nullptr)
    return std::nullopt;
  const std::uint64_t begun_ns = clock_.now_ns();
  if ((!is_last && !may_ask(begun_ns)) || is_asking_.exchange(true)) return std::nullopt;
  const ErrnoGuard keep;
  CUdevice handle = 0;
  CUuuid uuid{};
  std::optional<DeviceHolders> found;
  if (real_.cuDeviceGet(&handle, device.value) == CUDA_SUCCESS &&
      real_.cuDeviceGetUuid_v2(&uuid, handle) == CUDA_SUCCESS)
    found = list_->ask(uuid.bytes);
  if (found) judge(states_[device.value], *found);
  const std::uint64_t took_ns = clock_.now_ns() - begun_ns;
  if (was_asked_.exchange(true, relaxed)) {
    cost_ns_.store(took_ns, relaxed);
    spent_ns_.fetch_add(took_ns, relaxed);
  }
  is_asking_.store(false);
  return found ? found->own_bytes : std::nullopt;
}

}  // namespace cuwarden::tracking
