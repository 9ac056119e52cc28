// Reads how full each device is: now and then while the program allocates, and once more at the end
// of the process. Notes each device's name and UUID when the process first uses it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/devices/device_queries.hpp"
#include "runtime_hooks/tracking/devices/memory_pools.hpp"

namespace cuwarden::tracking {

// An object that is told each time before and after DeviceReadings asks the driver how full a
// device is. It is also told, at most ten times a second, that a device is in use.
class ReadingListener {
 public:
  // Is called each time before DeviceReadings asks the driver how full the device is. The result, a
  // number of the listener's own, is passed to device_was_read().
  virtual std::uint64_t reading_begins(DeviceOrdinal) noexcept { return 0; }
  // Is called each time DeviceReadings has learned from the driver how full the device is, on the
  // thread that asked. `begun` is the result of reading_begins(). Returns true if the listener has
  // changed the device's memory.
  virtual bool device_was_read(DeviceOrdinal, const driver::DeviceReading&,
                               std::uint64_t begun) noexcept = 0;
  // Is called for the listener of DeviceReadings' constructor while the program allocates or frees
  // memory: at most once in 100 ms, over all devices together. `DeviceOrdinal`: the device of the
  // current context, whether it is read at that time or not.
  virtual void interval_has_passed(DeviceOrdinal) noexcept {}
  // Is called for the listener of DeviceReadings::tell_first() if the other listener has changed
  // the device's memory after the reading was passed to this one.
  virtual void memory_has_changed(DeviceOrdinal) noexcept {}

 protected:
  ~ReadingListener() = default;
};

// Asks the driver how full devices are, and writes the answers (readings) into the ledger: now and
// then while the program allocates, and at the end of the process. All functions may be called by
// several threads at once.
class DeviceReadings {
 public:
  // Devices with this ordinal or a higher one are ignored.
  static constexpr std::int32_t device_limit = LiveContexts::device_limit;

  // `listener` is told of each reading; null: no object is told. `clock` measures how long a
  // reading takes. All arguments outlive this object.
  DeviceReadings(ledger::Writer& ledger, const driver::RealDriver& real,
                 const DeviceQueries& queries, MemoryPools& memory_pools, ReadingListener* listener,
                 Clock& clock = system_clock) noexcept
      : ledger_(ledger),
        real_(real),
        queries_(queries),
        memory_pools_(memory_pools),
        listener_(listener),
        clock_(clock) {}

  // Adds a listener that is told of each reading before the constructor's, and before the reading
  // is written into the ledger. It must not change the device's memory: the result of its
  // device_was_read() is ignored. It outlives this object. To be called before the first reading.
  void tell_first(ReadingListener& listener) noexcept { first_listener_ = &listener; }

  // Remembers that the process uses this device, so that a last reading is taken of it at the end
  // of the process. The first call for a device writes its name and UUID into the ledger. Ignores
  // ordinals outside [0, device_limit).
  void meet(DeviceOrdinal device) noexcept {
    if (device.value < 0 || device.value >= device_limit) return;
    if (!met_[device.value].load(std::memory_order_relaxed)) meet_first(device);
  }

  // Returns the bytes that memory pools (CUmemoryPool) and graphs of this process keep on the
  // device for later requests, although no allocation uses them. Returns zeros if the process has
  // used neither on the device. Returns none if the driver does not say, or if the ordinal is not
  // from 0 to 63.
  std::optional<IdleBytes> idle_in_memory_pools(DeviceOrdinal device) const noexcept;
  // Returns the bytes that memory pools (CUmemoryPool) and graphs of this process keep on the
  // device and that no allocation uses. Includes unused parts of a graph's memory that the driver
  // counts as used. Returns 0 if the process has used neither on the device. Returns none if the
  // driver does not say, or if the ordinal is not from 0 to 63.
  std::optional<std::uint64_t> idle_bytes(DeviceOrdinal device) const noexcept {
    const auto idle = idle_in_memory_pools(device);
    return idle ? std::optional(idle->unallocated) : std::nullopt;
  }

  // Asks the driver how full the current context's device is, and writes the answer into the
  // ledger: at most once in 100 ms, over all devices together, and for about 0.1 % of the time if
  // the driver is slow, but once in 10 s at least. Then tells the listeners. Also calls
  // ReadingListener::interval_has_passed(), at most once in 100 ms, and writes the host memory that
  // the process holds into the ledger, at most once in 250 ms. `now_ns` is the time since the
  // process began.
  void read_now_and_then(std::uint64_t now_ns) noexcept {
    if (now_ns >= next_look_ns_.load(std::memory_order_relaxed)) look_around(now_ns);
  }
  // Takes a last reading of each device that has a live context and that meet() was called for:
  // asks the driver how full the device is, writes the answer into the ledger, and tells the
  // listener. Then writes the host memory that the process holds. `may_ask` is called before each
  // question to the driver; once it returns false, the driver is not asked any more. Returns the
  // free bytes of each device by its ordinal; 0 for devices that were not read.
  using FreeBytes = std::array<std::uint64_t, LiveContexts::device_limit>;
  FreeBytes read_at_exit(const FunctionRef<bool()>& may_ask) noexcept;

 private:
  // Writes the device's name and UUID into the ledger, if no other thread has done so.
  void meet_first(DeviceOrdinal) noexcept;
  // Takes those readings of the current device and of the process's host memory use that are due.
  // `now_ns` is the time since the process began.
  void look_around(std::uint64_t now_ns) noexcept;
  // Reads the current context's device, which must have this ordinal, and plans the time of the
  // next reading by how long this one took. `now_ns` is the time since the process began.
  void read_and_plan(DeviceOrdinal, std::uint64_t now_ns) noexcept;
  // Plans the next look_around() for the earliest time at which a reading of a device, one of the
  // host memory in use, or a call of interval_has_passed() is due.
  void plan_look() noexcept;
  // Takes a reading of the current context's device, which must have this ordinal: writes the
  // driver's answers into the ledger, and tells the listener. Does nothing if the driver does not
  // answer. `ReadingAt` is the occasion. The driver is asked for the device's free memory, and then
  // for the bytes that memory pools keep unused. If `may_ask`, called in between, returns false,
  // the question about memory pools is left out. Returns the device's free bytes; 0 if the driver
  // does not answer.
  std::uint64_t read(DeviceOrdinal, ledger::ReadingAt, const FunctionRef<bool()>& may_ask) noexcept;

  ledger::Writer& ledger_;
  const driver::RealDriver& real_;
  const DeviceQueries& queries_;
  MemoryPools& memory_pools_;
  ReadingListener* const listener_;
  ReadingListener* first_listener_ = nullptr;
  Clock& clock_;  // measures how long a reading takes
  // Nanoseconds that the last reading took which read_now_and_then() has made; 0: none yet.
  std::atomic<std::uint64_t> last_took_ns_{0};
  // Nanoseconds from the process's beginning to the next look_around(), as plan_look() has planned
  // it.
  std::atomic<std::uint64_t> next_look_ns_{0};
  // Nanoseconds from the process's beginning to the end of the present interval of 100 ms.
  std::atomic<std::uint64_t> next_interval_ns_{0};
  // Nanoseconds from the process's beginning to the earliest time for the next reading of a device.
  std::atomic<std::uint64_t> next_reading_ns_{0};
  // Nanoseconds from the process's beginning to the earliest time for the next reading of the
  // process's host memory use.
  std::atomic<std::uint64_t> next_rss_ns_{0};
  // By device ordinal: true once the process has used the device, and a thread has begun to write
  // its name and UUID into the ledger.
  std::atomic<bool> met_[device_limit]{};
};

}  // namespace cuwarden::tracking
