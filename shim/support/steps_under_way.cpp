#include "shim/support/steps_under_way.hpp"

#include <sched.h>

#include <utility>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/ledger/write/steps.hpp"

namespace cuwarden::shim {

constinit StepsUnderWay steps_under_way;

// Holds the object for a scope. Converts to false if another thread held it for too long. The
// threads of a parent do not go on in a forked child, so the child takes over what they held.
class StepsUnderWay::Held {
 public:
  Held(StepsUnderWay& steps, pid_t self) noexcept : steps_(steps) {
    constexpr int attempts = 1000;
    for (int attempt = 0; attempt < attempts && !is_held_; ++attempt) {
      pid_t holder = steps.holder_.load(std::memory_order_relaxed);
      is_held_ = holder != self &&
                 steps.holder_.compare_exchange_strong(holder, self, std::memory_order_acquire);
      if (!is_held_) sched_yield();
    }
    if (is_held_) steps.adopt(self);
  }
  ~Held() {
    if (is_held_) steps_.holder_.store(0, std::memory_order_release);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  explicit operator bool() const noexcept { return is_held_; }

 private:
  StepsUnderWay& steps_;
  bool is_held_ = false;
};

void StepsUnderWay::adopt(pid_t self) noexcept {
  if (std::exchange(owner_, self) == self) return;
  count_ = name_length_ == 0 ? 0 : 1;
  last_ns_ = 0;
}

void StepsUnderWay::begin(pid_t self, std::string_view name, FindLedger ledger) noexcept {
  ledger::Writer* made = nullptr;
  {
    const Held held(*this, self);
    made = ledger();
    if (held && !name.empty())
      name_length_ = ledger::kept_step_name(name).copy(name_, sizeof name_);
    if (held && made == nullptr) {
      last_ns_ = tick_ns();
      ++count_;
    }
  }
  if (made != nullptr) made->steps.begin(name);
}

void StepsUnderWay::end_name(pid_t self, FindLedger ledger) noexcept {
  ledger::Writer* made = nullptr;
  {
    const Held held(*this, self);
    made = ledger();
    if (held) name_length_ = 0;
  }
  if (made != nullptr) made->steps.end_name();
}

// No other thread knows the ledger before `publish`, so nothing is waited for here.
void StepsUnderWay::hand_over(pid_t self, ledger::Writer& ledger,
                              FunctionRef<void()> publish) noexcept {
  const Held held(*this, self);
  const std::uint64_t count = held ? std::exchange(count_, 0) : 0;
  if (count != 0) ledger.steps.add({count, last_ns_, std::string_view(name_, name_length_)});
  publish();
}

}  // namespace cuwarden::shim
