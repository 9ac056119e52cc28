#include "shim/exports/steps.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/steps.hpp"
#include "shim/process/process.hpp"

namespace cuwarden::shim {
namespace {

// The steps that the program marked before its first CUDA call.
class StepsBeforeRecording {
 public:
  // Counts a step that begins now.
  void add() noexcept {
    forget_parents();
    last_ns_.store(tick_ns(), std::memory_order_relaxed);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  // Returns the steps that were counted, and forgets them.
  ledger::EarlierSteps take() noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) return {};
    forget_parents();
    return {count_.exchange(0, std::memory_order_relaxed),
            last_ns_.load(std::memory_order_relaxed)};
  }

 private:
  // Forgets the steps of the parent in a forked child.
  void forget_parents() noexcept {
    const pid_t now = Process::get().owner();
    if (owner_.exchange(now, std::memory_order_relaxed) != now)
      count_.store(0, std::memory_order_relaxed);
  }

  std::atomic<pid_t> owner_{0};            // process that the counted steps belong to
  std::atomic<std::uint64_t> count_{0};    // number of the counted steps
  std::atomic<std::uint64_t> last_ns_{0};  // start of the last step (tick_ns())
};
constinit StepsBeforeRecording steps_before_recording;

}  // namespace

// A process that calls no CUDA has no report.
void begin_step() noexcept {
  const ErrnoGuard keep;
  if (!Process::get().enabled()) return;
  if (ledger::Writer* const ledger = Process::get().ledger())
    return ledger->steps.begin(steps_before_recording.take());
  steps_before_recording.add();
}

}  // namespace cuwarden::shim

// The function that cuwarden.h and the Python module find by its name.
extern "C" [[gnu::visibility("default")]] void cuwarden_1_step() noexcept {
  cuwarden::shim::begin_step();
}
