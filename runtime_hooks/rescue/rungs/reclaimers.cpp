#include "runtime_hooks/rescue/rungs/reclaimers.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime_hooks/core/futex_wait.hpp"

namespace cuwarden::rescue {
namespace {

// The slot whose function the calling thread runs; null if it runs none. Initial-exec, as all
// thread-local memory of the shim.
[[gnu::tls_model("initial-exec")]] constinit thread_local const void* running_here = nullptr;

}  // namespace

bool is_reclaiming() noexcept { return running_here != nullptr; }

int Reclaimers::add(std::string_view name, std::string_view modules, ReclaimFunction function,
                    void* argument) noexcept {
  if (name.size() >= sizeof Entry::name || modules.size() >= sizeof Entry::modules) return 0;
  const Locked locked(lock_);
  if (!locked) return 0;
  Slot* const slot = std::ranges::find(slots_, State::empty, &Slot::state);
  if (slot == std::end(slots_)) return 0;
  slot->entry = {};
  std::memcpy(slot->entry.name, name.data(), name.size());
  std::memcpy(slot->entry.modules, modules.data(), modules.size());
  slot->function = function;
  slot->argument = argument;
  slot->owner = this;
  slot->ends = false;
  slot->told.store(0, std::memory_order_relaxed);
  slot->state = State::ready;
  count_.fetch_add(1, std::memory_order_relaxed);
  added_.fetch_add(1, std::memory_order_relaxed);
  return slot->entry.id = ++last_id_;
}

bool Reclaimers::remove(int id, std::uint64_t deadline_ns) noexcept {
  Slot* slot = nullptr;
  std::uint32_t before = 0;
  {
    const Locked locked(lock_);
    if (!locked) return false;
    slot = std::ranges::find_if(slots_, [id](const Slot& each) {
      return each.state != State::empty && each.entry.id == id;
    });
    if (slot == std::end(slots_)) return false;
    if (!slot->ends) count_.fetch_sub(1, std::memory_order_relaxed);
    if (slot->state == State::ready) {
      slot->state = State::empty;
      return true;
    }
    slot->ends = true;
    before = slot->returned.load(std::memory_order_relaxed);
  }
  return running_here == slot || wait_for(*slot, before, deadline_ns);
}

void Reclaimers::forked() noexcept {
  new (&lock_) FutexLock;
  running_here = nullptr;
  for (Slot& slot : slots_)
    if (slot.state == State::running) {
      slot.state = slot.ends ? State::empty : State::ready;
      slot.ends = slot.given_up = false;
    }
}

bool Reclaimers::entry(std::size_t index, Entry& to) noexcept {
  const Locked locked(lock_);
  if (!locked || slots_[index].state == State::empty || slots_[index].ends) return false;
  to = slots_[index].entry;
  return true;
}

Reclaimers::Answer Reclaimers::call(std::size_t index, int id, const Wanted& wanted,
                                    std::size_t& given_back) noexcept {
  Slot& slot = slots_[index];
  std::uint32_t before = 0;
  bool starts = false;
  given_back = 0;
  {
    const Locked locked(lock_);
    if (!locked || slot.state == State::empty || slot.ends || slot.entry.id != id)
      return Answer::gone;
    before = slot.returned.load(std::memory_order_relaxed);
    starts = slot.state == State::ready;
    if (!starts && slot.given_up) return Answer::timed_out;
    if (starts) {
      slot.state = State::running;
      slot.given_up = false;
      slot.wanted = wanted;
    }
  }
  if (starts && !process_.start_thread(run, &slot)) returned(slot, Answer::no_thread, 0);
  const bool has_returned = wait_for(slot, before, wanted.deadline_ns);
  const Locked locked(lock_);
  if (!locked) return Answer::gone;
  if (!has_returned && slot.returned.load(std::memory_order_relaxed) == before) {
    slot.given_up = slot.given_up || starts;
    return Answer::timed_out;
  }
  if (!starts) return Answer::of_another;
  given_back = slot.given_back;
  return slot.answer;
}

// Calls the reclaimer's function. An exception is destroyed in its handler here, before the program
// may unload the function's code. Without the sanitizer, because the unwinding of pthread_exit has
// no object to which the handler's reference could be bound.
__attribute__((no_sanitize("undefined"))) Reclaimers::Answer Reclaimers::run_function(
    Slot& slot, const Wanted& wanted, std::size_t& given_back) {
  try {
    given_back = slot.function(wanted.device, wanted.bytes, slot.argument);
    return Answer::returned;
  } catch (const abi::__forced_unwind&) {  // pthread_exit
    throw;
  } catch (...) {
    return Answer::threw;
  }
}

void* Reclaimers::run(void* given) {
  Slot& slot = *static_cast<Slot*>(given);
  running_here = &slot;
  const Wanted wanted = slot.wanted;
  // Reports the end of the call, even if pthread_exit ends the thread.
  struct Ending {
    Slot& slot;
    Answer answer = Answer::threw;
    std::size_t given_back = 0;
    ~Ending() { slot.owner->returned(slot, answer, given_back); }
  } ending{slot};
  // The requesting thread has stopped waiting, and its context may have been destroyed.
  if (slot.owner->clock_.now_ns() >= wanted.deadline_ns) {
    ending.answer = Answer::returned;
    return nullptr;
  }
  const driver::RealDriver& real = *wanted.real;
  // In this mode, a free by the reclaimer does not end a capture that another thread has begun
  // meanwhile.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (real.cuThreadExchangeStreamCaptureMode != nullptr)
    real.cuThreadExchangeStreamCaptureMode(&mode);
  if (wanted.context.value != 0 && real.cuCtxSetCurrent != nullptr)
    real.cuCtxSetCurrent(reinterpret_cast<CUcontext>(wanted.context.value));
  ending.answer = run_function(slot, wanted, ending.given_back);
  return nullptr;
}

void Reclaimers::returned(Slot& slot, Answer answer, std::size_t given_back) noexcept {
  {
    const Locked locked(lock_);
    slot.answer = answer;
    slot.given_back = given_back;
    slot.state = slot.ends ? State::empty : State::ready;
    slot.ends = slot.given_up = false;
    slot.returned.fetch_add(1, std::memory_order_release);
  }
  futex_wake_all(slot.returned);
}

bool Reclaimers::wait_for(Slot& slot, std::uint32_t before, std::uint64_t deadline_ns) noexcept {
  for (;;) {
    if (slot.returned.load(std::memory_order_acquire) != before) return true;
    const std::uint64_t now = clock_.now_ns();
    if (now >= deadline_ns) return false;
    clock_.wait_ns(slot.returned, before, deadline_ns - now);
  }
}

bool Reclaimers::is_first_time(std::size_t index, serving::ReclaimerFailure failure) noexcept {
  const std::uint32_t bit = 1u << static_cast<unsigned>(failure);
  return (slots_[index].told.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
}

}  // namespace cuwarden::rescue
