#include "shim/process/exit_readings.hpp"

#include <algorithm>
#include <span>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/driver/calling_threads.hpp"
#include "runtime_hooks/stacks/captured.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/probes/other_processes.hpp"
#include "shim/support/own_stack.hpp"

namespace cuwarden::shim {
namespace {

// Longest wait for threads that are inside the driver only briefly, but again and again.
constexpr std::uint64_t longest_wait_for_threads_ns = 20'000'000;

struct Question {
  hooks::Session& session;
  const void* frame;
  bool is_clear = false;
};

// True if the calling thread has interrupted nothing: neither a signal handler nor the driver is on
// its stack. False also if a part of the stack cannot be seen.
bool is_clear(hooks::Session& session, const void* frame) noexcept {
  stacks::ask_no_more();
  Question question{session, frame};
  const auto look = [](void* argument) {
    Question& asked = *static_cast<Question*>(argument);
    std::uint64_t frames[stacks::depth_limit];
    const stacks::Captured captured = asked.session.sites.frames_from(asked.frame, frames);
    const auto seen = std::span(frames).first(captured.count);
    asked.is_clear =
        captured.whole && !captured.in_signal_handler &&
        std::none_of(seen.begin(), seen.end(), [](std::uint64_t at) { return is_in_driver(at); });
  };
  call_on_own_stack(look, &question);
  return question.is_clear;
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
    call_on_own_stack(
        [](void* argument) {
          auto& given = *static_cast<Task*>(argument);
          note_others_at_exit(given.ledger, given.may_ask);
        },
        &task);
  }
  budget.spend(now_ns() - begun_ns);
}

}  // namespace cuwarden::shim
