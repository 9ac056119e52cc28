// Other processes that may take and release memory of the same devices while this process measures
// what its own calls take there.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/tracking/devices/live_contexts.hpp"

namespace cuwarden::tracking {

// Facts about the processes that hold memory of one device, at one moment.
struct DeviceHolders {
  // True if a process other than this one holds memory of the device, false if the list of
  // processes has none. None if the list cannot show that, such as where the listed pids are those
  // of another namespace.
  std::optional<bool> has_others;
  // Bytes of the device's memory that this process holds; none: unknown.
  std::optional<std::uint64_t> own_bytes;
};

// A source that knows if other processes hold memory of a device, and how many bytes this process
// holds. The shim (the part of cuwarden that is preloaded) implements it.
class HolderList {
 public:
  // Returns the facts about the device's holders; none if these cannot be listed. `uuid`: the
  // device's UUID (cuDeviceGetUuid_v2). May take milliseconds. The caller holds no lock. It may
  // have passed the gate that cuwarden closes to move memory (GateScope), as it does around a
  // driver's launch.
  virtual std::optional<DeviceHolders> ask(std::span<const char, 16> uuid) noexcept = 0;

 protected:
  ~HolderList() = default;
};

// Knows for each device with an ordinal from 0 to 63 if other processes (neighbours) may change its
// memory. The list of the processes that hold the device's memory is asked only after a sign of a
// neighbour: more memory is in use than this process can have taken, or memory changed without a
// call of this process. All functions may be called by several threads at once, and leave errno as
// it was.
//
// A question to the list costs milliseconds on some systems. All questions together may take 50 ms
// at the start, and 0.1 % of the run time after that. The next question is expected to take as long
// as the latest one. The first question does not count, because a library is loaded for it.
class Neighbours {
 public:
  // If memory changed without a call of this process, may_exist() is true for `likely_ns`
  // nanoseconds unless the HolderList says otherwise, and is_busy() is true for `busy_ns`
  // nanoseconds.
  static constexpr std::uint64_t likely_ns = 10'000'000'000, busy_ns = 1'000'000'000;
  // Largest number of bytes in use on a device, beyond those that NVML counts for this process, for
  // which no other process is assumed. The driver and NVML do not count all memory alike. A
  // neighbour has a context, which takes more.
  static constexpr std::uint64_t most_hidden_bytes = std::uint64_t{256} << 20;

  // `list`: null if the holders cannot be listed. All arguments outlive the object.
  Neighbours(const driver::RealDriver& real, HolderList* list, Clock& clock) noexcept
      : real_(real), list_(list), clock_(clock), start_ns_(clock.now_ns()) {}

  // True if another process may change the device's memory at any time. That is so if the
  // HolderList shows another process, or if memory in use proves one. Without an answer of the
  // HolderList, it is so if memory changed without a call of this process in the last 10 seconds
  // (likely_ns). False for ordinals outside 0 to 63.
  bool may_exist(DeviceOrdinal) const noexcept;
  // True if memory of the device changed without a call of this process in the last second
  // (busy_ns).
  bool is_busy(DeviceOrdinal) const noexcept;
  // Records that the device's memory changed without a call of this process.
  void moved(DeviceOrdinal) noexcept;
  // Records that another process holds memory of the device: more is in use than this process can
  // have taken. A later answer of the HolderList that shows this process alone replaces the record.
  void holds_memory(DeviceOrdinal) noexcept;
  // Asks the HolderList for the processes that hold memory of the device, if the time for such
  // questions allows one more. The answer decides may_exist(). The device must be that of the
  // current context. Returns the bytes of the device that this process holds; none if the
  // HolderList was not asked or does not say.
  std::optional<std::uint64_t> ask(DeviceOrdinal) noexcept;
  // Makes ask() do nothing from now on, but in a thread that set_asks_at_exit() allows. To be
  // called when the process begins to end.
  void process_is_ending() noexcept { ends_.store(true, std::memory_order_relaxed); }
  // Lets the calling thread call ask() after process_is_ending(), without a limit on the time that
  // questions take (`may_ask` true), or forbids it again. For the last readings of the devices.
  void set_asks_at_exit(bool may_ask) noexcept {
    asks_at_exit_.store(may_ask ? pthread_self() : pthread_t{}, std::memory_order_relaxed);
  }
  // Returns the time of the constructor's `clock`: nanoseconds since an arbitrary but fixed moment.
  std::uint64_t now_ns() const noexcept { return clock_.now_ns(); }

 private:
  // The latest knowledge about other processes with memory on a device: `alone`: there is none;
  // `others`: there are some; `nothing`: unknown.
  enum class Known : std::uint8_t { nothing, alone, others };
  // The knowledge about one device's neighbours: other processes with memory on the device.
  struct State {
    std::atomic<Known> known{Known::nothing};
    // Time at which the device's memory last changed without a call of this process: nanoseconds
    // of the clock that the constructor was given. 0: it never did.
    std::atomic<std::uint64_t> moved_ns{0};
  };

  // True if `states_` has an entry for the device: its ordinal is from 0 to 63.
  static bool is_kept(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < LiveContexts::device_limit;
  }
  // True if the device's memory changed without a call of this process in the last `ns`
  // nanoseconds. False for ordinals outside 0 to 63.
  bool moved_within(DeviceOrdinal, std::uint64_t ns) const noexcept;
  // True if the time for questions to the HolderList allows one more. `now_ns`: time of `clock_`.
  bool may_ask(std::uint64_t now_ns) const noexcept;
  // Enters in State if the device has other processes: by the list's answer, and by a reading of
  // the current context's device. Leaves State as it was if neither tells.
  void judge(State&, const DeviceHolders&) noexcept;

  const driver::RealDriver& real_;
  HolderList* const list_;
  Clock& clock_;
  const std::uint64_t start_ns_;
  State states_[LiveContexts::device_limit];
  // Nanoseconds that all questions to the HolderList took, and that the latest one took. The first
  // question does not count.
  std::atomic<std::uint64_t> spent_ns_{0}, cost_ns_{0};
  // True while a thread asks the HolderList. If that thread ends or leaves by longjmp meanwhile,
  // the value stays true, and the HolderList is not asked again.
  std::atomic<bool> is_asking_{false};
  // True once the HolderList was asked for the first time, with or without an answer.
  std::atomic<bool> was_asked_{false};
  std::atomic<bool> ends_{false};
  // The thread that may call ask() after process_is_ending(); 0: no thread may.
  std::atomic<pthread_t> asks_at_exit_{};
};

}  // namespace cuwarden::tracking
