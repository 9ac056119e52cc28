// Device memory that calls take without having been asked for it: contexts, code, local memory of
// kernels, the heap of device-side malloc, streams.
//
// The driver does not say how much that is, so the device is read before and after such a call. A
// difference is believed only where this process did nothing else on that device meanwhile. Where
// other processes may change the device's memory, too, a difference needs to be confirmed.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/devices/device_queries.hpp"
#include "runtime_hooks/tracking/devices/device_readings.hpp"
#include "runtime_hooks/tracking/devices/neighbours.hpp"
#include "runtime_hooks/tracking/free_bases.hpp"

namespace cuwarden::tracking {

// Keeps account of implicit memory: device memory that CUDA calls take without being asked for it,
// for contexts, code, local memory of kernels, the heap of malloc() in kernels, streams and graphs.
// A span is a measurement of one call, by readings of the device before and after the call.
//
// A new object counts all kernels as not launched and all graphs as not submitted, since a forked
// child has launched and submitted none.
class ImplicitMemory {
 public:
  // All arguments outlive the object.
  ImplicitMemory(ledger::Writer&, const DeviceQueries&, DeviceReadings&, Neighbours&) noexcept;

  // Begins a measurement (span) of one call on the device. The caller itself reads the device's
  // free memory before and after the call. Returns the span's number, from 1; 0, with nothing
  // begun, if the ordinal is not from 0 to 63. Unless the result is 0, the caller must call
  // end_span() for the device: if a longjmp prevents that, no later measurement on the device
  // counts.
  std::uint64_t begin_span(DeviceOrdinal) noexcept;
  // Ends the measurement (span) with this number on the device. Returns true if the measurement
  // counts: no other call of this process that may change the device's memory overlapped with it. A
  // call for another device matters only if it began before the span and has not ended.
  bool end_span(DeviceOrdinal, std::uint64_t span) noexcept;
  // Returns the number that the next span will have.
  std::uint64_t next_span() const noexcept { return next_span_.load(std::memory_order_acquire); }
  // True if the measurement (span) with this number, which is under way on the device, counts so
  // far: no other call of this process that may change the device's memory has overlapped with it.
  bool is_undisturbed(DeviceOrdinal, std::uint64_t span) const noexcept;
  // True while a measurement (span) of some call is under way on any device.
  bool any_span() const noexcept { return open_.load(std::memory_order_relaxed) != 0; }
  // Invalidates the measurements (spans) that are under way on the device, because another call may
  // change the device's memory. Does nothing if the ordinal is not from 0 to 63.
  void disturb_spans(DeviceOrdinal device) noexcept {
    if (has_spans(device)) spans_[device.value].disturbed.store(true, std::memory_order_relaxed);
  }
  // Invalidates the measurements (spans) that are under way on any device, because another call may
  // change the memory of some device.
  void disturb_all_spans() noexcept {
    for (Spans& spans : spans_) spans.disturbed.store(true, std::memory_order_relaxed);
  }
  // Invalidates the measurements (spans) that are under way on the device, and forgets the bases of
  // all devices, because another call may change the device's memory.
  void disturb(DeviceOrdinal device) noexcept {
    disturb_spans(device);
    bases.memory_may_change();
  }

  // Readings of devices' free memory, from which the memory that several calls took together is
  // measured.
  FreeBases bases;
  // Other processes that may change a device's memory during a measurement.
  Neighbours& neighbours;

  // Returns true if one more call may be measured, by readings of the device's free memory before
  // and after it. All readings together may take 4 ms at the start, and 0.1 % of the run time. (On
  // an H200, a reading takes 3 us.) `now_ns` is the time since the process began.
  bool may_read(std::uint64_t now_ns) const noexcept {
    constexpr std::uint64_t at_start_ns = 4'000'000, share = 1000;
    return reading_ns_.load(std::memory_order_relaxed) < at_start_ns + now_ns / share;
  }
  // Counts one reading of a device's free memory, which took `ns` nanoseconds. may_read() limits
  // further readings by the sum of these times, over all devices.
  void reading_took(std::uint64_t ns) noexcept {
    reading_ns_.fetch_add(ns, std::memory_order_relaxed);
    earlier_reading_ns_.store(last_reading_ns_.exchange(ns, std::memory_order_relaxed),
                              std::memory_order_relaxed);
  }
  // Returns true if the last two readings of a device's free memory each took longer than calls can
  // bear that load code: 50 us. (On an H200, a reading takes 3 us.)
  bool are_readings_slow() const noexcept {
    constexpr std::uint64_t most_ns = 50'000;
    return last_reading_ns_.load(std::memory_order_relaxed) > most_ns &&
           earlier_reading_ns_.load(std::memory_order_relaxed) > most_ns;
  }

  // Facts about the kernel launches on one device, in the context that was used there last. They
  // tell which launch may take device memory. If launches in two contexts of the device alternate,
  // the facts are reset each time. Then code that a launch loads may be counted as local memory.
  struct Launches {
    // Handle of the context in which kernels are launched; 0: the entry is unused.
    std::atomic<std::uint64_t> context{0};
    // True once a launch in the context has succeeded.
    std::atomic<bool> any{false};
    // Bytes of local memory that each thread of a kernel can have in the context without the driver
    // taking more device memory.
    std::atomic<std::uint64_t> local_bytes{0};
    // Bytes of local memory for each thread that the driver may take when a graph is instantiated:
    // the largest need among kernels whose launch was captured into a graph instead of being run. 0
    // if no captured kernel needed more than `local_bytes`, or once an instantiation took the
    // memory.
    std::atomic<std::uint64_t> captured_local_bytes{0};
    // Number of launches that seemed to be captured into a graph instead of being run. After the
    // first 256, such launches are treated as run.
    std::atomic<std::uint32_t> captured_count{0};
    // Size in bytes that the program has set for the heap of device-side malloc (cuCtxSetLimit). 0
    // if the program has set none, or once a launch or a graph's instantiation has taken the device
    // memory for the heap.
    std::atomic<std::uint64_t> heap_bytes{0};
    // Number of calls of may_read_for_heap() since the program has set `heap_bytes`, without calls
    // while `heap_bytes` was 0. The first 256 are allowed to measure.
    std::atomic<std::uint32_t> heap_readings{0};
    // Returns true if the device's free memory may be read before and after the kernel launch or
    // graph instantiation that the caller is about to make. The readings are to find the call in
    // which the driver takes the memory for the heap of device-side malloc. False if `heap_bytes`
    // is 0: the program has set no size for this heap, or the driver has taken the memory. Returns
    // true at most 256 times for each size that the program sets.
    bool may_read_for_heap() noexcept {
      constexpr std::uint32_t most = 256;
      return heap_bytes.load(std::memory_order_relaxed) != 0 &&
             heap_readings.fetch_add(1, std::memory_order_relaxed) < most;
    }
  };
  // Returns the facts about the kernel launches on the device in this context; null if the ordinal
  // is not from 0 to 63. If another context was used on the device last, the facts are first reset
  // to those of a context without launches. They live as long as this object.
  Launches* launches_of(DeviceOrdinal, ContextId) noexcept;

  // Writes the device's name and UUID into the ledger, unless they are there already. This calls
  // the driver, which book() then does not. So meet() must be called first if book() is called
  // where the driver must not be called.
  void meet(DeviceOrdinal device) noexcept { device_readings_.meet(device); }
  // Adds a change of the device's implicit memory (which calls take without being asked for it) to
  // the device's sums in the ledger. Returns by how much they changed. Does nothing if the ordinal
  // is not from 0 to 63. For a change of contexts, local memory or the heap, call
  // ContextMemory::book() instead, which changes their records, too.
  ledger::ImplicitEffect book(DeviceOrdinal, const ledger::ImplicitChange&) noexcept;
  // Forgets all kernels that were launched or loaded and all graphs that were submitted. Sets the
  // implicit memory of all devices without a live context to 0 in the ledger. Must be called after
  // a context has ended.
  void context_ended() noexcept;

  // Bytes of local memory that each thread of a kernel can have in a new context before a launch
  // takes device memory for it. Measured: if a kernel needs 16 KiB for each thread, its launch
  // takes 15 KiB for each thread that the device can hold at once.
  static constexpr std::uint64_t initial_local_bytes = 1024;

 private:
  // The measurements (spans) that are under way on one device. `open`: their number. `disturbed`:
  // true if another call may have changed the device's memory since they began.
  struct Spans {
    std::atomic<std::uint32_t> open{0};
    std::atomic<bool> disturbed{false};
  };
  // True if the ordinal is from 0 to 63, so that calls on the device can be measured.
  static bool has_spans(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < LiveContexts::device_limit;
  }

  ledger::Writer& ledger_;
  const DeviceQueries& queries_;
  DeviceReadings& device_readings_;
  // Number of measurements (spans) under way on all devices.
  std::atomic<std::uint32_t> open_{0};
  // Number of the next measurement (span).
  std::atomic<std::uint64_t> next_span_{1};
  Spans spans_[LiveContexts::device_limit];
  // Time that readings of devices have taken so far, and that the last two took, in nanoseconds.
  std::atomic<std::uint64_t> reading_ns_{0}, last_reading_ns_{0}, earlier_reading_ns_{0};
  // By device ordinal: true if book() has added implicit memory of the device to the ledger since
  // the device last had no context.
  std::atomic<bool> booked_[LiveContexts::device_limit]{};
  Launches launches_[LiveContexts::device_limit];
};

}  // namespace cuwarden::tracking
