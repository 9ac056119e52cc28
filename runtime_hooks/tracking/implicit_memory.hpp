// Device memory that calls take without having been asked for it: contexts, code, local memory of
// kernels, the heap of device-side malloc, streams.
//
// The driver does not say how much that is, so the device is read before and after such a call. A
// difference is believed only where this process did nothing else on that device meanwhile; changes
// by other processes cannot be seen.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/write/devices.hpp"
#include "runtime_hooks/ledger/write/writer.hpp"
#include "runtime_hooks/tracking/device_queries.hpp"
#include "runtime_hooks/tracking/device_readings.hpp"

namespace cuwarden::tracking {

// Keeps account of implicit memory: device memory that CUDA calls take without being asked for it,
// for contexts, code, local memory and streams. A span is a measurement of one call, by readings of
// the device before and after the call.
//
// A new object counts all kernels as not launched, since a forked child has launched none.
class ImplicitMemory {
 public:
  // The caller keeps all arguments alive as long as the object.
  ImplicitMemory(ledger::Writer&, const DeviceQueries&, DeviceReadings&) noexcept;

  // Begins a measurement (span) of one call on the device. Returns false if the ordinal is out of
  // range. Each span must be ended by end_span(): one that a longjmp has left makes all later ones
  // on the device count as disturbed.
  bool begin_span(DeviceOrdinal) noexcept;
  // Ends a measurement (span). Returns true if no other call that may change the device's memory
  // was seen meanwhile. The measurement then counts. A call that began before the span and ends
  // after it is not noticed.
  bool end_span(DeviceOrdinal) noexcept;
  // True while a call is being measured on any device.
  bool any_span() const noexcept { return open_.load(std::memory_order_relaxed) != 0; }
  // Tells the measurements (spans) that are open on the device that another call may change its
  // memory, so that they do not count.
  void disturb(DeviceOrdinal device) noexcept {
    if (has_spans(device)) spans_[device.value].disturbed.store(true, std::memory_order_relaxed);
  }
  // Tells all open measurements (spans) that another call may change the device's memory, so that
  // they do not count.
  void disturb_all() noexcept {
    for (Spans& spans : spans_) spans.disturbed.store(true, std::memory_order_relaxed);
  }

  // Returns true if one more call may be measured, and counts it. 256 calls are allowed at the
  // start, and one more for every 16 ms of run time. So the readings (8 us for each call) take 6 ms
  // and 0.1 % of the run at most. `now_ns` is the time on the ledger's clock.
  bool may_read(std::uint64_t now_ns) noexcept { return may(readings_, 256, now_ns); }
  // Returns true if the device's memory may be read before and after one more call that asks about
  // a kernel (such as cuFuncGetAttribute), and counts the call. 512 calls are allowed at the start,
  // and one more for every 16 ms of run time. `now_ns` is the time on the ledger's clock.
  bool may_ask(std::uint64_t now_ns) noexcept { return may(asked_, 512, now_ns); }

  // Memory that kernel launches have taken on one device, for the context that was used there last.
  // If two contexts take turns, each counts as new every time. Then code that a launch loads may be
  // counted as local memory.
  struct Launches {
    // The context; 0 if there is none.
    std::atomic<std::uint64_t> context{0};
    // True once a launch in the context has succeeded.
    std::atomic<bool> any{false};
    // Bytes of local memory that each thread on the device can have without the driver taking more
    // device memory.
    std::atomic<std::uint64_t> local_bytes{0};
    // Most bytes of local memory that a thread of a captured kernel needs; 0 if none needs more
    // than `local_bytes`. The driver takes the memory when the kernel's graph is instantiated.
    std::atomic<std::uint64_t> captured_local_bytes{0};
    // Number of launches that were taken for captured ones.
    std::atomic<std::uint32_t> captured_count{0};
    // Size that the program set for the heap of device-side malloc (cuCtxSetLimit); 0 if it set
    // none, or once a launch has taken the memory for the heap.
    std::atomic<std::uint64_t> heap_bytes{0};
    // Number of calls measured since `heap_bytes` was set, to find the one that takes the heap's
    // memory.
    std::atomic<std::uint32_t> heap_readings{0};
    // Returns true if one more call may be measured to find the launch that takes the heap's
    // memory, and counts it. False if no heap is awaited, or after 256 calls.
    bool may_read_for_heap() noexcept {
      constexpr std::uint32_t most = 256;
      return heap_bytes.load(std::memory_order_relaxed) != 0 &&
             heap_readings.fetch_add(1, std::memory_order_relaxed) < most;
    }
  };
  // Returns the state of the device's launches in this context. If another context was used there
  // last, the state is reset first. Returns null if the ordinal is out of range.
  Launches* launches_of(DeviceOrdinal, ContextId) noexcept;

  // Adds a measured change of the device's implicit memory to the ledger.
  void book(DeviceOrdinal, const ledger::ImplicitChange&) noexcept;
  // Forgets all kernels that were launched, because a context has ended. If that was a device's
  // last context, its implicit memory becomes 0 in the ledger.
  void context_ended() noexcept;

  // Bytes of local memory that each thread can have from the start, without a launch taking device
  // memory. (Measured: 16 KiB for each thread take 15 KiB of the device.)
  static constexpr std::uint64_t initial_local_bytes = 1024;

 private:
  // Returns true if fewer than `at_start` + (one for every 16 ms of `now_ns`) are counted in
  // `readings`, and counts one more.
  static bool may(std::atomic<std::uint64_t>& readings, std::uint64_t at_start,
                  std::uint64_t now_ns) noexcept {
    constexpr std::uint64_t a_reading_in_ns = 16'000'000;
    if (readings.load(std::memory_order_relaxed) >= at_start + now_ns / a_reading_in_ns)
      return false;
    readings.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  // The measurements (spans) under way on one device: their number, and true if another call may
  // have changed the device's memory meanwhile.
  struct Spans {
    std::atomic<std::uint32_t> open{0};
    std::atomic<bool> disturbed{false};
  };
  // True if the ordinal is in range.
  static bool has_spans(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < LiveContexts::device_limit;
  }

  ledger::Writer& ledger_;
  const DeviceQueries& queries_;
  DeviceReadings& device_readings_;
  // Number of measurements (spans) under way on all devices.
  std::atomic<std::uint32_t> open_{0};
  Spans spans_[LiveContexts::device_limit];
  // Number of calls that may_read() has allowed, and of questions that may_ask() has allowed.
  std::atomic<std::uint64_t> readings_{0}, asked_{0};
  // True for each device with implicit memory in the ledger.
  std::atomic<bool> booked_[LiveContexts::device_limit]{};
  Launches launches_[LiveContexts::device_limit];
};

}  // namespace cuwarden::tracking
