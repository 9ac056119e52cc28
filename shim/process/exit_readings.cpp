#include "shim/process/exit_readings.hpp"

#include <algorithm>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"
#include "shim/probes/memory_of_others.hpp"
#include "shim/process/stack_room.hpp"

namespace cuwarden::shim {
namespace {

// Most times that the devices are read until other processes rest.
constexpr int most_readings = 3;
// Longest wait for threads that are inside the driver only briefly, but again and again.
constexpr std::uint64_t longest_wait_for_threads_ns = 20'000'000, most_wait_again_ns = 2'000'000;

// True if the calling thread has interrupted nothing: neither a signal handler nor the driver is on
// its stack. False also if a part of the stack cannot be seen.
bool is_clear(hooks::Session& session, const void* frame) noexcept {
  stacks::ask_no_more();
  const PresentFrames frames = present_frames(session.sites, frame);
  return frames.whole && !frames.in_signal_handler && !frames.in_driver;
}

// Writes the memory of other processes to the ledger. `moving`: as for note_others_at_exit().
// Returns true if NVML has told.
bool note_others(hooks::Session& session, const FunctionRef<bool()>& may_ask,
                 std::uint64_t moving) {
  bool any = false;
  call_with_room(session.sites,
                 [&] { any = note_others_at_exit(session.ledger, may_ask, moving); });
  return any;
}

}  // namespace

namespace {

// Returns a bit for each device whose free bytes differ in the two readings.
std::uint64_t difference_of(const tracking::DeviceReadings::FreeBytes& one,
                            const tracking::DeviceReadings::FreeBytes& other) {
  std::uint64_t devices = 0;
  for (std::size_t i = 0; i < one.size(); ++i) devices |= std::uint64_t{one[i] != other[i]} << i;
  return devices;
}

}  // namespace

bool may_ask_driver(hooks::Session& session, const void* frame, const WaitBudget& budget) noexcept {
  return !driver::device_is_lost.load(std::memory_order_relaxed) && is_clear(session, frame) &&
         driver::calling_threads.are_all_outside(
             now_ns() + std::min(budget.left_ns(), longest_wait_for_threads_ns));
}

// The list of other processes and the reading of a device belong together only if the device's
// memory rested in between.
void take_exit_readings(hooks::Session& session, const void* frame, WaitBudget& budget) noexcept {
  if (driver::device_is_lost.load(std::memory_order_relaxed) || !is_clear(session, frame)) return;
  const std::uint64_t begun_ns = now_ns(), end_ns = begun_ns + budget.left_ns();
  if (driver::calling_threads.are_all_outside(
          std::min(end_ns, begun_ns + longest_wait_for_threads_ns))) {
    const auto may_ask = [end_ns] {
      return now_ns() < end_ns && !driver::device_is_lost.load(std::memory_order_relaxed);
    };
    session.neighbours.set_asks_at_exit(true);
    auto before = session.readings.read_at_exit(may_ask);
    // Half of the time stays for the reports.
    const auto may_repeat = [&] {
      const std::uint64_t now = now_ns();
      return now < begun_ns + (end_ns - begun_ns) / 2 &&
             driver::calling_threads.are_all_outside(std::min(end_ns, now + most_wait_again_ns));
    };
    std::uint64_t moving = 0;
    for (int i = 0; i < most_readings && note_others(session, may_ask, 0) && may_repeat(); ++i) {
      const auto after = session.readings.read_at_exit(may_ask);
      moving = difference_of(before, after);
      before = after;
      if (moving == 0) break;
    }
    if (moving != 0) note_others(session, may_ask, moving);
    session.neighbours.set_asks_at_exit(false);
  }
  budget.spend(now_ns() - begun_ns);
}

}  // namespace cuwarden::shim
