#include "runtime_hooks/driver/calling_threads.hpp"

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/confinement.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/thread_id.hpp"

namespace cuwarden::driver {

constinit CallingThreads calling_threads{};
constinit std::atomic<bool> device_is_lost{false};
constinit thread_local CallingThreads::Thread* CallingThreads::own_ = nullptr;

// A thread that has ended leaves its row behind. The search for such a row begins behind the row
// that was taken last. So threads that come and go do not look at the rows of all living threads. A
// confined thread gets no row, since it must not ask the kernel for ids of threads.
[[gnu::cold, gnu::noinline]] CallingThreads::Thread* CallingThreads::take_row() noexcept {
  if (is_confined()) {
    are_too_many_.store(true);
    return own_ = &stand_in_;
  }
  const ErrnoGuard keep;
  const int mine = own_thread_id();
  const std::uint32_t first = next_.load(std::memory_order_relaxed);
  for (const bool of_the_dead : {false, true}) {
    for (std::uint32_t i = 0; i < most; ++i) {
      Thread& row = threads_[(first + i) % most];
      std::int32_t there = row.id.load(std::memory_order_relaxed);
      if (there == of_parent) continue;
      if (there != 0 && there != mine && !(of_the_dead && thread_has_ended(there))) continue;
      if (!row.id.compare_exchange_strong(there, mine)) continue;
      if (row.calls.load(std::memory_order_relaxed) != 0) was_left_.store(true);
      row.calls.store(0, std::memory_order_relaxed);
      row.submissions.store(0, std::memory_order_relaxed);
      // all_pass_gate() may run at this moment. It either finds the row's id or is found here.
      row.is_free_to_submit.store(true);
      if (all_pass_gate_.load()) row.is_free_to_submit.store(false);
      next_.store((first + i + 1) % most, std::memory_order_relaxed);
      return own_ = &row;
    }
  }
  are_too_many_.store(true);
  return own_ = &stand_in_;
}

void CallingThreads::all_pass_gate() noexcept {
  all_pass_gate_.store(true);
  all_of([](Thread& thread) {
    if (thread.id.load() != 0) thread.is_free_to_submit.store(false);
    return true;
  });
}

bool CallingThreads::are_all_outside(std::uint64_t deadline_ns, Clock& clock) noexcept {
  constexpr std::uint64_t pause_ns = 100'000;
  const auto comes_to_zero = [&](std::atomic<std::uint32_t>& calls, const auto& is_gone) {
    while (calls.load(std::memory_order_acquire) != 0) {
      if (is_gone() || clock.now_ns() >= deadline_ns) return false;
      clock.sleep_ns(pause_ns);
    }
    return true;
  };
  if (was_left_.load()) return false;
  if (own_ != nullptr && own_->calls.load(std::memory_order_relaxed) != 0) return false;
  return all_of([&](Thread& thread) {
           return comes_to_zero(thread.calls, [&] {
             return thread_has_ended(thread.id.load(std::memory_order_relaxed));
           });
         }) &&
         comes_to_zero(common_calls_, [] { return false; });
}

// Rows of the child's threads keep their counts, since a call under way, such as the child's first
// one, is subtracted when it returns. The thread that has forked may still use the row that has its
// id in the parent, if another thread calls this. So no other thread gets a row of the parent's
// threads.
void CallingThreads::forked() noexcept {
  for (Thread& thread : threads_) {
    const std::int32_t id = thread.id.load(std::memory_order_relaxed);
    if (&thread == own_) {
      thread.id.store(own_thread_id(), std::memory_order_relaxed);
    } else if (id > 0 && thread_has_ended(id)) {
      thread.calls.store(0, std::memory_order_relaxed);
      thread.submissions.store(0, std::memory_order_relaxed);
      thread.id.store(of_parent, std::memory_order_relaxed);
    }
  }
  common_calls_.store(0, std::memory_order_relaxed);
  was_left_.store(false, std::memory_order_relaxed);
  device_is_lost.store(false, std::memory_order_relaxed);
}

// After a fork, calls are not counted any more that the calling thread is still inside.
[[gnu::cold, gnu::noinline]] void CallingThreads::leave_common() noexcept {
  std::uint32_t calls = common_calls_.load(std::memory_order_relaxed);
  while (calls != 0 && !common_calls_.compare_exchange_weak(calls, calls - 1)) {
  }
}

// Notes a call whose error shows that the device is lost. Errors are compared by number, because
// the oldest headers lack some of the names. For most of them cuda.h says that all further CUDA
// work returns the same error, or that the process must be terminated. A device that has fallen off
// the bus or its link answers with 46, 214, 220, 806 or 999.
void note_failed_call(CUresult result) noexcept {
  switch (static_cast<int>(result)) {
    case 46:   // CUDA_ERROR_DEVICE_UNAVAILABLE
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case 220:  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    case 226:  // CUDA_ERROR_CONTAINED
    case 700:  // CUDA_ERROR_ILLEGAL_ADDRESS
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case 806:  // CUDA_ERROR_MPS_RPC_FAILURE
    case 810:  // CUDA_ERROR_MPS_CLIENT_TERMINATED
    case 911:  // CUDA_ERROR_EXTERNAL_DEVICE
    case 999:  // CUDA_ERROR_UNKNOWN
      device_is_lost.store(true, std::memory_order_relaxed);
      break;
    default:
      break;
  }
}

}  // namespace cuwarden::driver
