#include "shim/turns/writing_turn.hpp"

#include "runtime_hooks/core/futex_wait.hpp"
#include "runtime_hooks/core/thread_id.hpp"

namespace cuwarden::shim {
namespace {

constexpr std::uint64_t look_at_writer_ns = 50'000'000;

std::uint32_t caller() { return static_cast<std::uint32_t>(own_thread_id()); }

bool has_ended(std::uint32_t thread) { return thread_has_ended(static_cast<int>(thread)); }

}  // namespace

// Another thread's canary proves that it jumped away only once other frames have overwritten it.
// The order of addresses proves nothing about a stack that is not the caller's.
bool WritingTurn::is_lost(std::uint32_t writer, bool is_callers_lost) const noexcept {
  if (writer == caller()) return is_callers_lost;
  const hooks::CallCanary* const canary = canary_.load();
  const bool jumped_away = canary != nullptr && hooks::CallCanary::is_over(canary, nullptr);
  return has_ended(writer) || (jumped_away && writer_.load() == writer && canary_.load() == canary);
}

WritingTurn::Answer WritingTurn::take(std::uint64_t longest_ns) noexcept {
  // A thread that is in no other call of cuwarden's cannot have interrupted its own writing.
  const bool is_outermost = hooks::call_state.driver_depth <= 1;
  const std::uint64_t deadline_ns = clock_.now_ns() + longest_ns;
  for (;;) {
    std::uint32_t writer = 0;
    Answer answer = Answer::taken;
    const hooks::CallCanary* canary = canary_.load();
    if (!writer_.compare_exchange_strong(writer, caller())) {
      answer = Answer::taken_over;
      if (!is_lost(writer, is_outermost)) {
        if (writer == caller()) return Answer::interrupted;
        if (clock_.now_ns() >= deadline_ns) return Answer::not_given;
        clock_.wait_ns(writer_, writer, look_at_writer_ns);
        continue;
      }
      // The lost writer's canary goes first, so that no thread takes it for the new writer's.
      canary_.compare_exchange_strong(canary, nullptr);
      if (!writer_.compare_exchange_strong(writer, caller())) continue;
    }
    canary_.store(hooks::call_state.driver_canary);
    return answer;
  }
}

void WritingTurn::give_back() noexcept {
  canary_.store(nullptr);
  writer_.store(0);
  futex_wake_all(writer_);
}

bool WritingTurn::is_callers() const noexcept { return writer_.load() == caller(); }

bool WritingTurn::is_free_or_ended() const noexcept {
  const std::uint32_t writer = writer_.load();
  return writer == 0 || has_ended(writer);
}

void WritingTurn::reset() noexcept {
  canary_.store(nullptr, std::memory_order_relaxed);
  writer_.store(0, std::memory_order_relaxed);
}

}  // namespace cuwarden::shim
