// Device memory that calls take without having been asked for it: contexts, code, local memory of
// kernels, the heap of device-side malloc, streams.
//
// Nobody says how much that is, so the device is read before and after. A difference is believed
// only where this process did nothing else on that device meanwhile; what others do cannot be seen.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/driver/cuda_api.hpp"
#include "runtime_hooks/driver/device_reading.hpp"
#include "runtime_hooks/driver/real_functions.hpp"
#include "runtime_hooks/families/live_contexts.hpp"
#include "runtime_hooks/ledger/writer.hpp"

namespace cuwarden::families {

class HookedCall;
class Recorder;

// After a call on the current device that asks for no memory and may need some: does something only
// for a refusal for lack of memory.
void note_refusal(HookedCall&, CUresult, ledger::Asked) noexcept;

// Of one recorder. The kernels that were launched begin anew with it.
class ImplicitMemory {
 public:
  ImplicitMemory() noexcept;

  // A time in which nothing else may happen on a device. One that is left by a longjmp disturbs all
  // later ones. False: there is none for such a device.
  bool begin_span(DeviceOrdinal) noexcept;
  // Whether nothing else happened: no call began or ended, and no other span was there. A call that
  // takes longer than the span is not noticed.
  bool end_span(DeviceOrdinal) noexcept;
  bool any_span() const noexcept { return open_.load(std::memory_order_relaxed) != 0; }
  // Something happens on the device.
  void disturb(DeviceOrdinal device) noexcept {
    if (has_spans(device)) spans_[device.value].disturbed.store(true, std::memory_order_relaxed);
  }
  void disturb_all() noexcept {
    for (Spans& spans : spans_) spans.disturbed.store(true, std::memory_order_relaxed);
  }

  // Two readings take 8 us: what they may take in all is 0.1 % of the run, and 6 ms.
  bool may_read(std::uint64_t now_ns) noexcept { return may(readings_, 256, now_ns); }
  // The same for questions about kernels, of which there are more.
  bool may_ask(std::uint64_t now_ns) noexcept { return may(asked_, 512, now_ns); }

  // What kernels of the context that was used last on a device have been given. Contexts that take
  // turns are each new every time: then what a launch took may count as local memory and be code.
  struct Launches {
    std::atomic<std::uint64_t> context{0};
    std::atomic<bool> any{false};
    std::atomic<std::uint64_t> local_bytes{0};  // for a thread
    // Of those that were captured since: they are given it when a graph of them is instantiated.
    std::atomic<std::uint64_t> captured_local_bytes{0};
    std::atomic<std::uint32_t> captured_count{0};
    // What the program set the heap of device-side malloc to, and no launch took yet; 0: nothing.
    std::atomic<std::uint64_t> heap_bytes{0};
    std::atomic<std::uint32_t> heap_readings{0};  // since then, to find out which launch takes it
    // Whether one more is allowed.
    bool may_read_for_heap() noexcept {
      constexpr std::uint32_t most = 256;
      return heap_bytes.load(std::memory_order_relaxed) != 0 &&
             heap_readings.fetch_add(1, std::memory_order_relaxed) < most;
    }
  };
  // Null for a device that is out of range.
  Launches* launches_of(DeviceOrdinal, ContextId) noexcept;

  void book(Recorder&, DeviceOrdinal, const ledger::ImplicitChange&) noexcept;
  // A context has ended: where it was a device's last, everything went with it.
  void context_ended(Recorder&) noexcept;

  // What a thread has from the start, without a launch taking more (measured: 16 KiB for each
  // thread take 15 KiB of the device).
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

  std::atomic<std::uint32_t> open_{0};  // on all devices
  Spans spans_[LiveContexts::device_limit];
  std::atomic<std::uint64_t> readings_{0}, asked_{0};
  std::atomic<bool> booked_[LiveContexts::device_limit]{};
  Launches launches_[LiveContexts::device_limit];
};

// Around one call: what the device of the current context has less afterwards.
class ImplicitSpan {
 public:
  explicit ImplicitSpan(HookedCall& call) noexcept : call_(call) {}
  ~ImplicitSpan();
  ImplicitSpan(const ImplicitSpan&) = delete;
  ImplicitSpan& operator=(const ImplicitSpan&) = delete;

  // Before the call; does nothing where the device cannot be read.
  void begin(DeviceOrdinal) noexcept;
  bool has_begun() const noexcept { return begun_; }
  // After it. Nothing where it was not begun, or is not to be believed.
  std::optional<std::int64_t> taken() noexcept;
  // The same, of a call that loads code: null also where no code is as large, and another process
  // took that meanwhile.
  std::optional<std::int64_t> taken_by_code() noexcept;
  // Books it, and the reading that it comes from.
  void book(const ledger::ImplicitChange&) noexcept;
  // A refused call made the driver give back what kernels of the context had, even what it has from
  // the start (measured: 414 MiB after a stack limit, 1,342 MiB after a launch that needed 2,112);
  // the launches that follow take it again.
  void book_given_back(std::uint64_t bytes, ContextId) noexcept;
  // What is in use inside a device's first context, which is current, and not recorded otherwise.
  void book_first_context(DeviceOrdinal) noexcept;

 private:
  HookedCall& call_;
  DeviceOrdinal device_ = no_device;
  bool begun_ = false;
  driver::DeviceReading before_, after_;
};

}  // namespace cuwarden::families
