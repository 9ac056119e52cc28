// Reads how full each device is: now and then while the program allocates, and once more at the end
// of the process. Notes each device's name and UUID when the process first uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/device_queries.hpp"
#include "runtime_hooks/tracking/memory_pools.hpp"

namespace cuwarden::tracking {

// An object that is told of each reading, by the thread that took it.
class ReadingListener {
 public:
  virtual void device_was_read(DeviceOrdinal, std::uint64_t total_bytes) noexcept = 0;

 protected:
  ~ReadingListener() = default;
};

class DeviceReadings {
 public:
  static constexpr std::int32_t device_limit = LiveContexts::device_limit;

  // `listener` may be null. All arguments outlive the object.
  DeviceReadings(ledger::Writer& ledger, const driver::RealDriver& real,
                 const DeviceQueries& queries, MemoryPools& memory_pools,
                 ReadingListener* listener) noexcept
      : ledger_(ledger),
        real_(real),
        queries_(queries),
        memory_pools_(memory_pools),
        listener_(listener) {}

  // Notes that the process uses this device. Ignores ordinals outside [0, device_limit).
  void meet(DeviceOrdinal device) noexcept {
    if (device.value < 0 || device.value >= device_limit) return;
    if (!met_[device.value].load(std::memory_order_relaxed)) meet_first(device);
  }

  // Bytes that memory pools and graphs of this process keep on the device for their next request;
  // none where the driver does not say.
  std::optional<IdleBytes> idle_in_memory_pools(DeviceOrdinal device) const noexcept;
  std::optional<std::uint64_t> idle_bytes(DeviceOrdinal device) const noexcept {
    const auto idle = idle_in_memory_pools(device);
    return idle ? std::optional(idle->unallocated) : std::nullopt;
  }

  // Reads the current device and the host's memory use where their interval has passed.
  // `now_ns`: the ledger's time.
  void read_now_and_then(std::uint64_t now_ns) noexcept {
    if (now_ns >= next_look_ns_.load(std::memory_order_relaxed)) look_around(now_ns);
  }
  // Takes the last readings, of every device that was met. Ends once `may_ask`, which is called
  // before each question to the driver, returns false.
  void read_at_exit(const FunctionRef<bool()>& may_ask) noexcept;

 private:
  void meet_first(DeviceOrdinal) noexcept;
  void look_around(std::uint64_t now_ns) noexcept;
  void read(DeviceOrdinal, ledger::ReadingAt) noexcept;

  ledger::Writer& ledger_;
  const driver::RealDriver& real_;
  const DeviceQueries& queries_;
  MemoryPools& memory_pools_;
  ReadingListener* const listener_;
  std::atomic<std::uint64_t> next_look_ns_{0};  // the earlier of the two below
  std::atomic<std::uint64_t> next_reading_ns_{0};
  std::atomic<std::uint64_t> next_rss_ns_{0};
  std::atomic<bool> met_[device_limit]{};
};

}  // namespace cuwarden::tracking
