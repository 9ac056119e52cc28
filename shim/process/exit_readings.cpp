#include "shim/process/exit_readings.hpp"

#include <algorithm>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"
#include "shim/probes/memory_of_others.hpp"
#include "shim/process/stack_room.hpp"

namespace cuwarden::shim {
namespace {

// Longest wait for threads that are inside the driver only briefly, but again and again.
constexpr std::uint64_t longest_wait_for_threads_ns = 20'000'000;

// True if the calling thread has interrupted nothing: neither a signal handler nor the driver is on
// its stack. False also if a part of the stack cannot be seen.
bool is_clear(hooks::Session& session, const void* frame) noexcept {
  stacks::ask_no_more();
  const PresentFrames frames = present_frames(session.sites, frame);
  return frames.whole && !frames.in_signal_handler && !frames.in_driver;
}

}  // namespace

void take_exit_readings(hooks::Session& session, const void* frame, WaitBudget& budget) noexcept {
  if (driver::device_is_lost.load(std::memory_order_relaxed) || !is_clear(session, frame)) return;
  const std::uint64_t begun_ns = now_ns(), end_ns = begun_ns + budget.left_ns();
  if (driver::calling_threads.are_all_outside(
          std::min(end_ns, begun_ns + longest_wait_for_threads_ns))) {
    const auto may_ask = [end_ns] {
      return now_ns() < end_ns && !driver::device_is_lost.load(std::memory_order_relaxed);
    };
    session.readings.read_at_exit(may_ask);
    struct Task {
      ledger::Writer& ledger;
      FunctionRef<bool()> may_ask;
    } task{session.ledger, may_ask};
    call_with_room(
        session.sites,
        [](void* argument) {
          auto& given = *static_cast<Task*>(argument);
          note_others_at_exit(given.ledger, given.may_ask);
        },
        &task);
  }
  budget.spend(now_ns() - begun_ns);
}

}  // namespace cuwarden::shim
