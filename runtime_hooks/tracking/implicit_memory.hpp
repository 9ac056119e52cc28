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

// Measures memory that calls take without asking for it. A new object counts all kernels as not
// launched, since a forked child has launched none.
class ImplicitMemory {
 public:
  // All references outlive the object.
  ImplicitMemory(ledger::Writer&, const DeviceQueries&, DeviceReadings&) noexcept;

  // Begins a span, during which nothing else may happen on the device. A span that a longjmp leaves
  // disturbs all later ones. Returns false for an ordinal that is out of range.
  bool begin_span(DeviceOrdinal) noexcept;
  // Ends the span. Returns true if nothing else happened: no call began or ended, and there was no
  // other span. A call that takes longer than the span is not noticed.
  bool end_span(DeviceOrdinal) noexcept;
  // Returns true while there is a span on some device.
  bool any_span() const noexcept { return open_.load(std::memory_order_relaxed) != 0; }
  // Notes that something else happens on the device, so that its open spans do not count.
  void disturb(DeviceOrdinal device) noexcept {
    if (has_spans(device)) spans_[device.value].disturbed.store(true, std::memory_order_relaxed);
  }
  // As disturb(), for all devices.
  void disturb_all() noexcept {
    for (Spans& spans : spans_) spans.disturbed.store(true, std::memory_order_relaxed);
  }

  // Returns true if one more span may be measured, and counts it. Two readings take 8 us; in all
  // they may take 0.1 % of the run, and 6 ms.
  bool may_read(std::uint64_t now_ns) noexcept { return may(readings_, 256, now_ns); }
  // Returns true if one more question about a kernel may be measured: there are more of these.
  bool may_ask(std::uint64_t now_ns) noexcept { return may(asked_, 512, now_ns); }

  // Memory of kernels in the context that was used last on a device. If two contexts take turns,
  // each counts as new every time; then code that a launch loads may count as local memory.
  struct Launches {
    std::atomic<std::uint64_t> context{0};
    std::atomic<bool> any{false};
    std::atomic<std::uint64_t> local_bytes{0};  // local memory for each thread
    // Local memory that kernels captured since then need for each thread. They are given it when
    // their graph is instantiated.
    std::atomic<std::uint64_t> captured_local_bytes{0};
    std::atomic<std::uint32_t> captured_count{0};
    // Size to which the program set the heap of device-side malloc, until a launch has taken it;
    // 0: not set.
    std::atomic<std::uint64_t> heap_bytes{0};
    std::atomic<std::uint32_t> heap_readings{
        0};  // spans since then, to find the launch that takes it
    // Returns true if one more span is allowed, and counts it.
    bool may_read_for_heap() noexcept {
      constexpr std::uint32_t most = 256;
      return heap_bytes.load(std::memory_order_relaxed) != 0 &&
             heap_readings.fetch_add(1, std::memory_order_relaxed) < most;
    }
  };
  // Returns null for an ordinal that is out of range.
  Launches* launches_of(DeviceOrdinal, ContextId) noexcept;

  // Adds a change to the device's implicit memory.
  void book(DeviceOrdinal, const ledger::ImplicitChange&) noexcept;
  // To be called after a context has ended. The end of a device's last context takes all of its
  // implicit memory with it.
  void context_ended() noexcept;

  // Local memory that each thread has from the start, without a launch taking more (measured: 16
  // KiB for each thread take 15 KiB of the device).
  static constexpr std::uint64_t initial_local_bytes = 1024;

 private:
  static bool may(std::atomic<std::uint64_t>& readings, std::uint64_t at_start,
                  std::uint64_t now_ns) noexcept {
    constexpr std::uint64_t a_reading_in_ns = 16'000'000;
    if (readings.load(std::memory_order_relaxed) >= at_start + now_ns / a_reading_in_ns)
      return false;
    readings.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  struct Spans {
    std::atomic<std::uint32_t> open{0};
    std::atomic<bool> disturbed{false};
  };
  static bool has_spans(DeviceOrdinal device) noexcept {
    return device.value >= 0 && device.value < LiveContexts::device_limit;
  }

  ledger::Writer& ledger_;
  const DeviceQueries& queries_;
  DeviceReadings& device_readings_;
  std::atomic<std::uint32_t> open_{0};  // on all devices
  Spans spans_[LiveContexts::device_limit];
  std::atomic<std::uint64_t> readings_{0}, asked_{0};
  std::atomic<bool> booked_[LiveContexts::device_limit]{};
  Launches launches_[LiveContexts::device_limit];
};

}  // namespace cuwarden::tracking
