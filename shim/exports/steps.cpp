#include "shim/exports/steps.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/ledger/format/step_layout.hpp"
#include "runtime_hooks/ledger/write/steps.hpp"
#include "shim/process/process.hpp"

namespace cuwarden::shim {
namespace {

// The steps that the program marked before its first CUDA call.
class StepsBeforeRecording {
 public:
  // Counts a step that begins now. `name`: its name; empty: none.
  void add(std::string_view name) noexcept {
    const Locked locked(lock_);
    if (!locked) return;
    forget_parents();
    last_ns_ = tick_ns();
    name_length_ = name.copy(last_name_, sizeof last_name_);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  // Calls `use` with the steps that were counted, and forgets them. The texts are valid during the
  // call alone.
  template <class Use>
  void take(const Use& use) noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) return use(ledger::EarlierSteps{});
    const Locked locked(lock_);
    if (!locked) return use(ledger::EarlierSteps{});
    forget_parents();
    use(ledger::EarlierSteps{count_.exchange(0, std::memory_order_relaxed), last_ns_,
                             std::string_view(last_name_, name_length_)});
  }

 private:
  // Forgets the steps of the parent in a forked child.
  void forget_parents() noexcept {
    const pid_t now = Process::get().owner();
    if (std::exchange(owner_, now) != now) count_.store(0, std::memory_order_relaxed);
  }

  FutexLock lock_;                                  // held while the members are read and written
  pid_t owner_ = 0;                                 // process that the counted steps belong to
  std::atomic<std::uint64_t> count_{0};             // number of the counted steps
  std::uint64_t last_ns_ = 0;                       // start of the last step (tick_ns())
  char last_name_[ledger::longest_step_name] = {};  // its name, without a terminating zero
  std::size_t name_length_ = 0;                     // length of the name in bytes; 0: none
};
constinit StepsBeforeRecording steps_before_recording;

}  // namespace

// A process that calls no CUDA has no report.
void begin_step(std::string_view name) noexcept {
  const ErrnoGuard keep;
  if (!Process::get().enabled()) return;
  if (ledger::Writer* const ledger = Process::get().ledger())
    return steps_before_recording.take(
        [&](const ledger::EarlierSteps& earlier) { ledger->steps.begin(name, earlier); });
  steps_before_recording.add(name);
}

}  // namespace cuwarden::shim

// The functions that cuwarden.h and the Python module find by their names.
extern "C" [[gnu::visibility("default")]] void cuwarden_1_step() noexcept {
  cuwarden::shim::begin_step();
}
extern "C" [[gnu::visibility("default")]] void cuwarden_1_named_step(const char* name) noexcept {
  cuwarden::shim::begin_step(name == nullptr ? std::string_view() : std::string_view(name));
}
