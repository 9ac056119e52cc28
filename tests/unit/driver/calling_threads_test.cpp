// CallingThreads, which knows the threads that are inside the driver. The end of the process asks
// it.
#include "runtime_hooks/driver/calling_threads.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/thread_id.hpp"
#include "tests/comes_about.hpp"
#include "tests/unit/manual_clock.hpp"

namespace cuwarden::driver {
namespace {

constexpr std::uint64_t one_ms = 1'000'000;

// Runs a test in a child, since a call that was left without returning stays counted in its
// process.
template <class Test>
bool holds_in_child(const Test& test) {
  const pid_t child = fork();
  if (child == 0) {
    calling_threads.forked();
    _exit(test() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

// Another thread that is inside a call of the driver until return_from_call().
class ThreadInside {
 public:
  ThreadInside() {
    wait_until("the thread is inside the call", [this] { return stage_ != 0; });
  }
  void return_from_call() {
    if (stage_.exchange(2) != 1) return;
    thread_.join();
  }

 private:
  std::atomic<int> stage_{0};  // 1: inside the call; 2: the call is to return
  std::thread thread_{[this] {
    DriverCall call;
    stage_ = 1;
    wait_until("the call is to return", [this] { return stage_ != 1; });
    call.returned(CUDA_SUCCESS);
  }};
};

// The end that many threads wait for, without looking again and again: a thousand threads that look
// would leave no time to others.
class End {
 public:
  void come() {
    const std::lock_guard locked(mutex_);
    has_come_ = true;
    all_.notify_all();
  }
  void await() {
    std::unique_lock locked(mutex_);
    if (!all_.wait_for(locked, longest_wait, [this] { return has_come_; })) std::abort();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  bool has_come_ = false;
};

// Waits in time that passes only in sleeps.
bool all_outside(std::uint64_t wait_ns = 5 * one_ms) {
  ManualClock clock;
  return calling_threads.are_all_outside(clock.now_ns() + wait_ns, clock);
}

// Runs a thread that begins a call of the driver and ends without returning from it. Returns when
// the kernel, too, has forgotten the thread, which it does shortly after join() has returned.
void leave_in_a_thread() {
  int left_by = 0;
  std::thread([&] {
    DriverCall left;
    left_by = own_thread_id();
  }).join();
  wait_until("the kernel has forgotten the thread", [&] { return thread_has_ended(left_by); });
}

TEST(CallingThreadsTest, a_call_that_has_returned_is_over_and_one_that_has_not_is_not) {
  EXPECT_TRUE(holds_in_child([] {
    DriverCall first;
    const bool inside = !all_outside();
    return first.returned(CUDA_SUCCESS) == CUDA_SUCCESS && inside && all_outside();
  }));
}

TEST(CallingThreadsTest, a_thread_inside_is_waited_for_until_the_deadline_alone) {
  EXPECT_TRUE(holds_in_child([] {
    ThreadInside other;
    const bool inside = !all_outside();
    ManualClock clock;
    clock.while_asleep = [&] { other.return_from_call(); };
    const bool came_back = calling_threads.are_all_outside(clock.now_ns() + one_ms, clock);
    return inside && came_back && all_outside();
  }));
}

TEST(CallingThreadsTest, a_thread_that_ended_inside_stays_inside) {
  EXPECT_TRUE(holds_in_child([] {
    leave_in_a_thread();
    ManualClock clock;
    const std::uint64_t begun_ns = clock.now_ns();
    const bool inside = !calling_threads.are_all_outside(begun_ns + 10'000 * one_ms, clock);
    return inside && clock.now_ns() == begun_ns;
  }));
}

TEST(CallingThreadsTest, a_thread_that_takes_an_ended_threads_slot_changes_nothing) {
  EXPECT_TRUE(holds_in_child([] {
    leave_in_a_thread();
    for (std::size_t i = 0; i < 2 * CallingThreads::most; ++i)
      std::thread([] { DriverCall().returned(CUDA_SUCCESS); }).join();
    return !all_outside() && !calling_threads.are_too_many();
  }));
}

TEST(CallingThreadsTest, a_forked_child_has_none_of_its_parents_threads) {
  EXPECT_TRUE(holds_in_child([] {
    leave_in_a_thread();
    return !all_outside() && holds_in_child([] { return all_outside(); });
  }));
}

TEST(CallingThreadsTest, a_call_in_which_a_forked_child_begins_ends_as_others) {
  EXPECT_TRUE(holds_in_child([] {
    DriverCall call;
    calling_threads.forked();
    const bool was_inside = !all_outside();
    call.returned(CUDA_SUCCESS);
    return was_inside && all_outside();
  }));
}

TEST(CallingThreadsTest, calls_of_other_threads_of_a_forked_child_stay_counted) {
  EXPECT_TRUE(holds_in_child([] {
    ThreadInside other;
    calling_threads.forked();
    const bool was_inside = !all_outside();
    other.return_from_call();
    return was_inside && all_outside();
  }));
}

TEST(CallingThreadsTest, a_call_without_a_slot_in_which_a_forked_child_begins_ends_as_others) {
  EXPECT_TRUE(holds_in_child([] {
    std::vector<std::thread> threads;
    std::atomic<std::size_t> ready{0};
    End ends;
    for (std::size_t i = 0; i < CallingThreads::most; ++i)
      threads.emplace_back([&] {
        DriverCall().returned(CUDA_SUCCESS);
        ++ready;
        ends.await();
      });
    wait_until("all threads have made a call", [&] { return ready == threads.size(); });
    std::thread([] {
      DriverCall call;
      calling_threads.forked();
      call.returned(CUDA_SUCCESS);
    }).join();
    const bool had_none = calling_threads.are_too_many();
    ends.come();
    for (std::thread& thread : threads) thread.join();
    return had_none && all_outside();
  }));
}

TEST(CallingThreadsTest, threads_without_a_slot_of_their_own_count_too) {
  EXPECT_TRUE(holds_in_child([] {
    std::vector<std::thread> threads;
    std::atomic<std::size_t> inside{0};
    End ends;
    for (std::size_t i = 0; i < CallingThreads::most + 1; ++i)
      threads.emplace_back([&] {
        DriverCall call;
        ++inside;
        ends.await();
        call.returned(CUDA_SUCCESS);
      });
    wait_until("all threads are inside a call", [&] { return inside == threads.size(); });
    const bool were_inside = calling_threads.are_too_many() && !all_outside();
    ends.come();
    for (std::thread& thread : threads) thread.join();
    return were_inside && all_outside();
  }));
}

// A thread that submits without the gate, although memory is moved, may read memory that is gone.
TEST(CallingThreadsTest, all_threads_pass_the_gate_once_one_has_asked_for_it) {
  EXPECT_TRUE(holds_in_child([] {
    std::atomic<int> step{0};
    bool had_none = false, was_free = false, passes = false, later_passes = false;
    std::thread before([&] {
      had_none = calling_threads.free_to_submit() == nullptr;
      was_free = calling_threads.own() != nullptr &&
                 calling_threads.free_to_submit() == calling_threads.own();
      step = 1;
      wait_until("all threads are to pass the gate", [&] { return step == 2; });
      passes = calling_threads.free_to_submit() == nullptr;
    });
    wait_until("the thread has counters", [&] { return step == 1; });
    calling_threads.all_pass_gate();
    step = 2;
    before.join();
    std::thread([&] {
      later_passes = calling_threads.own() != nullptr && !calling_threads.free_to_submit();
    }).join();
    return had_none && was_free && passes && later_passes;
  }));
}

TEST(CallingThreadsTest, a_thread_without_counters_of_its_own_passes_the_gate) {
  EXPECT_TRUE(holds_in_child([] {
    std::vector<std::thread> threads;
    std::atomic<std::size_t> inside{0}, free{0};
    End ends;
    for (std::size_t i = 0; i < CallingThreads::most + 1; ++i)
      threads.emplace_back([&] {
        DriverCall call;
        if (calling_threads.free_to_submit() != nullptr) ++free;
        ++inside;
        ends.await();
        call.returned(CUDA_SUCCESS);
      });
    wait_until("all threads are inside a call", [&] { return inside == threads.size(); });
    ends.come();
    for (std::thread& thread : threads) thread.join();
    return calling_threads.are_too_many() && free < threads.size() && free > 0;
  }));
}

TEST(CallingThreadsTest, an_error_after_which_nothing_works_is_remembered) {
  for (const int error : {1, 2, 100, 201, 400, 600, 709, 801}) {
    DriverCall().returned(static_cast<CUresult>(error));
    EXPECT_FALSE(device_is_lost) << error;
  }
  for (const int error : {46, 214, 220, 226, 700, 719, 999}) {
    DriverCall().returned(static_cast<CUresult>(error));
    EXPECT_TRUE(device_is_lost.exchange(false)) << error;
  }
}

}  // namespace
}  // namespace cuwarden::driver
